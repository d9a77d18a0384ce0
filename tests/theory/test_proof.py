"""`theory.check` against the proofs written out naively, and what it says of other runs."""

import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from scipy import integrate

import naive
from driftbandit import (
    DOMD,
    GLBOMD,
    Binomial,
    Circle,
    Gaussian,
    GivenArms,
    Greedy,
    Jumps,
    Poisson,
    RandomWalk,
    SignFlip,
    Uniform,
    simulate,
    theory,
)
from driftbandit.theory.losses import bregman, discounted, loss, mix_loss

mpl.use("Agg")
pytestmark = pytest.mark.kernel

T, DELTA = 24, 0.04


def arms(norm):
    X = np.random.default_rng(0).standard_normal((T, 5, 3))
    return GivenArms(norm * X / np.linalg.norm(X, axis=2).max())


WORLDS = [
    (
        RandomWalk(horizon=T, dim=3, radius=0.6, stride=0.2, arms=arms(1.7), family=Binomial(3)),
        naive.binomial(3),
    ),
    (
        Jumps(horizon=T, dim=3, radius=0.9, jumps=3, arms=arms(0.8), family=Gaussian(0.3, 2.5)),
        naive.gaussian(0.3, 2.5),
    ),
]
SURE = {"Lemma A.1", "eq. (A.1)", "Lemma A.7", "eq. (A.18)", "Lemma A.3", "Lemma A.9"}
SURE |= {"Lemma A.7, sharp", "Lemma B.2", "Lemma B.3", "Lemma C.1", "Lemma C.2"}
SURE |= {"Lemma A.5, lower", "Lemma A.5, upper", "Lemma A.6", "Lemma A.8", "Lemma A.9, squares"}
SURE |= {"Lemma A.4, repair", "Remark A.1", "Lemma B.3, first half", "Lemma C.2, first half"}


def played(world, **options):
    """Not the theorem's numbers, so that no side is a rounding error of another."""
    numbers = {"discount": 0.85, "regularization": 1.3, "step": 2.2, "delta": DELTA} | options
    return simulate(DOMD(problem=world.problem, **numbers), world, seeds=(4, 7))


def expectation(f, mean, variance):
    """E f(z), z normal, by adaptive quadrature."""
    s = math.sqrt(variance)
    density = lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    return integrate.quad(lambda u: f(mean + s * u) * density(u), -12, 12, epsabs=1e-13)[0]


class ByHand:
    """Everything of one seed from its definition; the paper's letters."""

    def __init__(self, run, link, row):
        world, self.link, self.L = run.environment, link, run.policy.problem.context_norm
        policy = run.policy
        self.gamma, self.lam, self.eta = policy.discount, policy.regularization, policy.step
        self.S, self.d, self.alpha = world.radius * self.L, world.dim, 1.5 * policy.step
        self.star = self.L * world.path(run.seeds[row])
        self.arms = world.arms.arms / self.L
        self.x = [X[a] for X, a in zip(self.arms, run.choices[row])]
        self.r, self.regret = run.rewards[row], run.regret[row]
        self.family, self.problem = world.family, world.problem
        self.k, self.c = self.problem.k_mu, self.problem.c_mu
        twin = naive.NaiveDOMD(
            dim=self.d,
            link=link,
            S=self.S,
            gamma=self.gamma,
            lam=self.lam,
            eta=self.eta,
            delta=DELTA,
        )
        self.H, self.A, self.beta = [], [], []
        for x, r in zip(self.x, self.r):
            self.H.append(twin.curvature())
            self.A.append(twin.curvature(age=1))
            self.beta.append(twin.coefficient())
            twin.update(x, r)
        self.H.append(twin.curvature())
        self.theta = twin.thetas

    def ell(self, s, theta):
        z = self.x[s] @ theta
        return (self.family.m(z) - self.r[s] * z) / self.link.g

    def mix(self, s):
        var = self.alpha * self.x[s] @ np.linalg.solve(self.A[s], self.x[s])
        f = lambda z: math.exp(-(self.family.m(z) - self.r[s] * z) / self.link.g)  # noqa: E731
        return -math.log(expectation(f, self.x[s] @ self.theta[s], var))

    def sums(self, f, t, power=1):
        return sum(self.gamma ** (power * (t - 1 - s)) * f(s) for s in range(t))

    def slopes(self, v, z):
        f = lambda s: (1 - s) * self.family.dmu(v + s * z)  # noqa: E731
        return integrate.quad(f, 0, 1, epsabs=1e-13)[0]

    def kl(self, s):
        """Of N(theta_{s+1}, alpha H_{s+1}^-1) from N(theta_s, alpha A_s^-1)."""
        ratio = self.A[s] @ np.linalg.inv(self.H[s + 1])
        move = norm2(self.A[s], self.theta[s + 1] - self.theta[s])
        return (np.trace(ratio) - self.d - np.linalg.slogdet(ratio)[1] + move / self.alpha) / 2

    def V(self, t):
        q = self.gamma
        return sum(
            q ** ((t - 1 - p) / 2)
            * math.sqrt((1 - q ** (p + 1)) / (1 - q))
            * np.linalg.norm(self.star[p + 1] - self.star[p])
            for p in range(t)
        )

    def logs(self, t):
        return math.log(math.pi**2 * (t + 1) ** 2 / (3 * DELTA))

    def mass(self, t):
        n = sum(self.gamma**s for s in range(t))
        return self.d * math.log(1 + self.k * n / (self.lam * self.d * self.link.g))

    def iota(self):
        return math.sqrt(2 * self.eta * self.k / self.link.g)

    def factor(self):
        """E[(e^a - 1 - a) / v] of a = M |y|, y ~ N(0, alpha / lam)."""
        M = self.family.self_concordance
        v = M**2 * self.alpha / self.lam
        gap = lambda y: math.expm1(abs(y)) - abs(y)  # noqa: E731
        return expectation(gap, 0.0, v) / v if v else 0.5

    def moved(self, t):
        return self.sums(lambda s: norm2(self.A[s], self.theta[s + 1] - self.theta[s]), t)

    def path_length(self, t):
        return sum(np.linalg.norm(self.star[p + 1] - self.star[p]) for p in range(t))

    def exploration(self, t):
        return 2 * self.k * self.beta[t] * math.sqrt((t + 1) * self.potential(t))

    def potential(self, t):
        q, g, d = self.gamma, self.link.g, self.d
        first = d * math.log(1 + self.k / (self.lam * d * g * (1 - q)))
        return 2 * g / self.c * (first + (t + 1) * d * math.log(1 / q))


def norm2(M, v):
    return v @ M @ v


def sides(o, t):
    """Both sides by place in the paper, after t rounds; a list index is a round less one."""
    g, q, k, S = o.link.g, o.gamma, o.k, o.S
    error, new, x = o.theta[t] - o.star[t], o.theta[t + 1], o.x[t]
    logdet = lambda M: np.linalg.slogdet(M)[1]  # noqa: E731
    inverse = np.linalg.inv(o.H[t])
    inv_regret = o.sums(lambda s: o.ell(s, o.star[t]) - o.ell(s, o.theta[s + 1]), t)
    drift_loss = o.sums(lambda s: o.ell(s, o.star[t]) - o.ell(s, o.star[s]), t)
    var = o.alpha * x @ np.linalg.solve(o.H[t + 1], x)
    mean_m = expectation(o.family.m, x @ new, var)
    miss = [abs(a @ error) for a in o.arms[t]]
    width = [math.sqrt(norm2(inverse, a)) for a in o.arms[t]]
    worst = int(np.argmax(np.array(miss) - o.beta[t] * np.array(width)))
    price = k * o.iota() / math.sqrt(o.lam)
    drift = 2 * o.path_length(t) / (1 - q) ** 1.5
    luck = o.sums(lambda s: o.ell(s, o.star[s]) - o.mix(s), t)
    found = {
        "Lemma A.1": (
            norm2(o.H[t + 1], new - o.star[t]),
            norm2(o.A[t], error)
            + 2 * o.eta * (o.ell(t, o.star[t]) - o.ell(t, new))
            - 2 / 3 * norm2(o.A[t], new - o.theta[t]),
        ),
        "eq. (A.1)": (
            norm2(o.H[t], error),
            4 * o.lam * S**2 + 2 * o.eta * inv_regret - 2 / 3 * o.moved(t),
        ),
        "Lemma A.7": (
            (mean_m - o.family.m(x @ new)) / g,
            2 * o.alpha * (logdet(o.H[t + 1]) - logdet(o.A[t])),
        ),
        "Lemma A.7, sharp": (
            (mean_m - o.family.m(x @ new)) / g,
            o.alpha * o.factor() * (logdet(o.H[t + 1]) - logdet(o.A[t])),
        ),
        "eq. (A.18)": (logdet(o.H[t]) - o.d * math.log(o.lam), o.mass(t)),
        "Lemma A.3": (
            o.sums(lambda s: o.mix(s) - o.ell(s, o.theta[s + 1]), t),
            (3 * o.eta + 1 / 2) * o.mass(t) + o.moved(t) / (3 * o.eta),
        ),
        "Lemma A.9": (
            o.sums(lambda s: (o.x[s] @ (o.star[t] - o.star[s])) ** 2, t),
            o.V(t) ** 2,
        ),
        "Lemma A.5, lower": (
            o.family.dmu(x @ new) / (2 + o.family.R * abs(x @ (o.star[t] - new))),
            o.slopes(x @ new, x @ (o.star[t] - new)),
        ),
        "Lemma A.5, upper": (
            o.slopes(x @ new, x @ (o.star[t] - new)),
            math.exp(o.family.R**2 * (x @ (o.star[t] - new)) ** 2 / 4) * o.family.dmu(x @ new),
        ),
        "Lemma A.8": (o.mix(t), (mean_m - o.r[t] * (x @ new)) / g + o.kl(t)),
        "Lemma A.9, squares": (
            o.sums(lambda s: (o.x[s] @ (o.star[t] - o.star[s])) ** 2, t, power=2),
            o.V(t) ** 2,
        ),
        "Lemma A.4, repair": (
            o.sums(lambda s: norm2(np.eye(o.d), o.star[t] - o.star[s]), t),
            o.V(t) ** 2,
        ),
        "Remark A.1": (q * luck, max(luck, 0)),
        "Lemma A.2": (luck, o.logs(t)),
        "Lemma A.4": (
            drift_loss,
            k / g * o.V(t) ** 2 + o.family.range**2 / (4 * g * k) * o.logs(t),
        ),
        "Theorem 1": (math.sqrt(norm2(o.H[t], error)), o.beta[t] + o.iota() * o.V(t)),
        "Lemma B.1": (miss[worst], o.beta[t] * width[worst] + price / k * o.V(t)),
        "Theorem 2": (
            o.regret[t],
            2 * k * o.beta[t] * math.sqrt(norm2(inverse, x)) + 2 * price * o.V(t),
        ),
        "Lemma B.2": (
            sum(norm2(np.linalg.inv(o.H[s]), o.x[s]) for s in range(t + 1)),
            o.potential(t),
        ),
        "Lemma B.3": (sum(o.V(s) for s in range(t + 1)), drift),
        "Lemma B.3, first half": (
            sum(o.V(s) for s in range(t + 1)),
            (1 + math.sqrt(q)) / (1 - q) ** 1.5 * o.path_length(t),
        ),
        "eq. (B.2)": (
            sum(o.regret[: t + 1]),
            2 * k * S + o.exploration(t) + 2 * price * drift,
        ),
    }
    M = o.family.self_concordance
    if o.lam >= 16 * o.alpha * o.d * M**2 / 7:
        inverse = np.linalg.det(np.eye(o.d) - o.alpha * M**2 * np.linalg.inv(o.H[t + 1]))
        found["Lemma A.6"] = (inverse**-0.5, 4 / 3)
    if o.problem.change_points is None:
        return found
    D, r = theory.best_D(o.problem, q, lam=o.lam), min(o.family.range, 2 * k * S)
    good = [
        all((o.star[s] == o.star[u]).all() for s in range(max(u - D, 0), u)) for u in range(t + 1)
    ]
    changes = sum((o.star[s] != o.star[s + 1]).any() for s in range(t))
    late = 4 * S * changes * q ** (D / 2) / (1 - q) ** 1.5
    R = o.family.range
    best, paper = (
        theory.best_D(o.problem, q, lam=o.lam, worst=R),
        theory.D_gamma(o.problem, q, lam=o.lam),
    )
    late_of = lambda D: 4 * S * changes * q ** (D / 2) / (1 - q) ** 1.5  # noqa: E731
    of = lambda D: R * (changes * D + 1) + o.exploration(t) + 2 * price * late_of(D)  # noqa: E731
    return found | {
        "Lemma C.1": (good.count(False), changes * D),
        "Lemma C.2": (sum(o.V(s) for s in range(t + 1) if good[s]), late),
        "Lemma C.2, first half": (
            sum(o.V(s) for s in range(t + 1) if good[s]),
            2 * o.path_length(t) * q ** (D / 2) / (1 - q) ** 1.5,
        ),
        "eq. (C.1), R": (sum(o.regret[: t + 1]), of(best)),
        "eq. (C.2)": (sum(o.regret[: t + 1]), of(paper)),
        "eq. (C.1)": (
            sum(o.regret[: t + 1]),
            r * (changes * D + 1) + o.exploration(t) + 2 * price * late,
        ),
    }


@pytest.mark.parametrize(("world", "link"), WORLDS, ids=["walk", "jumps"])
def test_both_sides_are_the_papers(world, link):
    run = played(world)
    proof = theory.check(run)
    for row in range(2):
        hand = ByHand(run, link, row)
        first = int(np.flatnonzero(np.diff(hand.star, axis=0).any(axis=1))[0])
        for t in sorted({0, 1, 2, first, first + 1, T - 1}):
            expected = sides(hand, t)
            assert {one.place for one in proof} == set(expected)
            for place, (left, right) in expected.items():
                one = proof[place]
                assert one.left[row, t] == pytest.approx(left, rel=1e-7, abs=1e-9), place
                assert one.right[row, t] == pytest.approx(right, rel=1e-7, abs=1e-9), place
    assert {one.place for one in proof if one.sure} == SURE & {one.place for one in proof}


@pytest.mark.parametrize(
    "world",
    [
        Circle(horizon=150, dim=3, radius=2.0),
        SignFlip(horizon=150, dim=2),
        Jumps(horizon=120, dim=2, radius=0.7, jumps=3, family=Gaussian(0.3, 4.0)),
        Circle(horizon=120, dim=2, family=Binomial(4)),
        Circle(horizon=60, dim=2, radius=0.5, family=Poisson(8)),
    ],
    ids=lambda w: f"{w.name} {type(w.family).__name__}",
)
@pytest.mark.parametrize("sharp", [False, True])
def test_everything_holds_with_the_theorems_numbers(world, sharp):
    policy = DOMD.from_theory(world.problem, delta=0.05, sharp=sharp)
    proof = theory.check(simulate(policy, world, seeds=range(2)))
    assert proof.holds, str(proof)


def test_sides_cross_where_a_condition_is_missing():
    """With a tiny lambda and step the mirror-descent lemmas are not true, and check says so."""
    world = SignFlip(horizon=60, dim=2, radius=3.0)
    proof = theory.check(played(world, regularization=0.01, step=0.2))
    assert not proof["Lemma A.1"].holds
    assert not proof.holds
    assert "FAILS" in str(proof)


def test_a_proof_shows_itself_in_a_line_and_in_a_notebook():
    proof = theory.check(played(Circle(horizon=20), regularization=0.01, step=0.2))
    failed = [one.place for one in proof if not one.holds]
    assert repr(proof).endswith(f"not true: {', '.join(failed)}>" if failed else "all hold>")
    assert proof._repr_html_().count("<tr>") == 1 + len(proof.inequalities)


def test_blocks_of_pairs_change_nothing(monkeypatch):
    run = played(WORLDS[0][0])
    whole = theory.check(run)
    monkeypatch.setattr("driftbandit.theory.losses.PAIRS", 10)  # not one round of two seeds
    monkeypatch.setattr("driftbandit.theory.auxiliary.PAIRS", 10)
    monkeypatch.setattr("driftbandit.theory.replay.ROUNDS", 7)
    for a, b in zip(whole, theory.check(run)):
        np.testing.assert_allclose(a.left, b.left, rtol=1e-12)
        np.testing.assert_allclose(a.right, b.right, rtol=1e-12)


def test_a_seed_is_checked_alone_as_in_company():
    world, numbers = WORLDS[1][0], {"discount": 0.85, "delta": DELTA}
    policy = DOMD(problem=world.problem, **numbers)
    both, one = (theory.check(simulate(policy, world, seeds=s)) for s in ((4, 7), (7,)))
    for a, b in zip(both, one):
        np.testing.assert_allclose(a.slack[1:], b.slack, rtol=1e-9, atol=1e-9)


def test_a_stored_run_is_checked_like_a_fresh_one(tmp_path):
    run = played(WORLDS[1][0])
    run.save(tmp_path / "run.npz")
    copy = theory.check(type(run).load(tmp_path / "run.npz"))
    np.testing.assert_array_equal(copy["Theorem 1"].left, theory.check(run)["Theorem 1"].left)


def test_a_run_that_does_not_replay_is_refused():
    run = played(WORLDS[0][0])
    choices = run.choices.copy()
    choices[0, 9] = (choices[0, 9] + 1) % 5
    with pytest.raises(ValueError, match="round 10"):
        theory.check(replace(run, choices=choices))


@pytest.mark.parametrize("kind", [GLBOMD, Greedy, Uniform])
def test_proofs_are_about_domd_with_its_radius(kind):
    world = Circle(horizon=10, dim=2)
    policy = kind(problem=world.problem, **({"delta": 0.1} if kind is GLBOMD else {}))
    with pytest.raises(ValueError, match="from_theory"):
        theory.check(simulate(policy, world, seeds=(0,)))


def test_mix_loss_of_a_gaussian_reward_is_its_integral():
    """E exp(-(z^2/2 - r z)/g) of z ~ N(a, v) has a closed form."""
    family, r, a, v = Gaussian(0.4, 5.0), 1.3, -0.2, 0.35
    b, precision = a / v + r / 0.4, 1 / v + 1 / 0.4
    log_mean = 0.5 * (b * b / precision - a * a / v) - 0.5 * math.log(v * precision)
    found = mix_loss(family, np.array([r]), np.array([a]), np.array([v]))
    assert found == pytest.approx(-log_mean, rel=1e-10)
    assert loss(family, np.array([r]), np.array([a])) == pytest.approx((a * a / 2 - r * a) / 0.4)
    assert bregman(family, np.array([a]), np.array([v])) == pytest.approx(v / 2 / 0.4)
    steep = mix_loss(Gaussian(1e-4, 5.0), np.array([r]), np.array([a]), np.array([v]))
    assert np.isfinite(steep).all()  # losses differ by thousands


def test_discounted_sums():
    values = np.random.default_rng(1).standard_normal((2, 9))
    expected = [
        [sum(0.8 ** (t - 1 - s) * row[s] for s in range(t)) for t in range(9)] for row in values
    ]
    np.testing.assert_allclose(discounted(values, 0.8), expected)
    np.testing.assert_allclose(discounted(values[1], 0.8), expected[1])


def line(left, right, sure=True):
    sides = np.array(left, dtype=float), np.array(right, dtype=float)
    return theory.Inequality("Lemma X", "lemma:x", "a claim", *sides, sure)


def test_an_inequality_holds_up_to_rounding():
    assert line([[0.0, 1.0]], [[0.0, 1.0 - 1e-9]]).holds
    assert not line([[0.0, 1.0]], [[0.0, 1.0 - 1e-6]]).holds
    assert line([[1e9]], [[1e9 - 1e-3]]).holds
    assert line([[1e-9]], [[0.0]]).holds
    assert line([[-1e9]], [[-1e9 - 1e-3]]).holds
    assert not line([[-1e9]], [[-1e9 - 1e3]]).holds


def test_the_tightest_round_is_the_one_with_the_least_share_of_slack():
    one = line([[0.0, 10.0, 90.0], [0.0, 1.0, 2.0]], [[0.0, 20.0, 100.0], [0.0, 1.05, 9.0]])
    assert one.tightest == (1.0, 1.05)
    np.testing.assert_allclose(one.slack[1], [0.0, 0.05, 7.0])
    assert line([[-1.0, -7.0]], [[2.0, -6.0]]).tightest == (-7.0, -6.0)
    assert line([[-100.0, -2.0]], [[1.0, 2.0]]).tightest == (-100.0, 1.0)
    assert line([[-1.0, 1.0]], [[-100.0, -1.0]]).tightest == (1.0, -1.0)
    assert line([[1.0, 5e11]], [[1.0, 1e12]]).tightest == (5e11, 1e12)  # 1 is nothing beside 1e12


def test_the_table_says_what_holds():
    good = line([[0.25, 0.5, 3.0]], [[1.0, 2.0, 4.0]])
    bad = line([[2.0, 0.1, 1.5]], [[1.0, 0.2, 2.5]], sure=False)
    proof = theory.Proof("P", "W", (0,), (good, bad))
    assert not proof.holds
    assert theory.Proof("P", "W", (0,), (good,)).holds
    title, head, first, second = str(proof).splitlines()
    assert title == "P in W, seeds: 1"
    assert first.split() == ["Lemma", "X", "a", "claim", "3", "4", "3", "4", "holds"]
    assert second.split() == [
        "Lemma",
        "X",
        "a",
        "claim",
        "1.5",
        "2.5",
        "2",
        "1",
        "FAILS",
        "(w.p.",
        "1-delta)",
    ]
    assert head.index("left") == first.index("3")
    assert proof.rows()[1] == {
        "place": "Lemma X",
        "label": "lemma:x",
        "claim": "a claim",
        "sure": False,
        "left": 1.5,
        "right": 2.5,
        "tightest_left": 2.0,
        "tightest_right": 1.0,
        "holds": False,
    }


def test_lines_are_found_by_place_or_label():
    proof = theory.Proof("P", "W", (0,), (line([[1.0]], [[2.0]]),))
    assert proof["Lemma X"] is proof["lemma:x"] is next(iter(proof))
    with pytest.raises(ValueError, match="choose one of Lemma X"):
        proof["Lemma Y"]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_the_figure_has_a_panel_for_each(count):
    from matplotlib.figure import Figure

    lines = tuple(line([[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]) for _ in range(count))
    figure = theory.Proof("P", "W", (0, 1), lines).plot(Figure(), seed=1)
    panels = [ax for ax in figure.axes if ax.axison]
    assert len(panels) == count
    assert [list(curve.get_ydata()) for curve in panels[-1].lines] == [[7.0, 8.0], [5.0, 6.0]]
    assert list(panels[0].lines[0].get_xdata()) == [1, 2]
    first = theory.Proof("P", "W", (0, 1), lines).plot(Figure()).axes[0]
    assert list(first.lines[0].get_ydata()) == [3.0, 4.0]
    assert panels[0].get_title() == "Lemma X: a claim"
