"""Estimators and confidence sequences: naive twins, exact expectations, coverage."""

import functools
import importlib
import itertools
import json
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from scipy.integrate import quad

from driftbandit import plan
from driftbandit.estimators import increments, ope, planning, propensity_check, sequences
from driftbandit.estimators.accumulators import Difference, Value
from driftbandit.estimators.increments import Bettor, LoggedArms, side
from driftbandit.estimators.overlap import Overlap, overlap

# A world of one step: three arms, rewards 0 or 1, an arm that is hardly ever logged.
H = np.array([0.9, 0.09, 0.01])
TRUTH = np.array([0.2, 0.5, 0.9])
NEW, OLD = np.array([0.1, 0.0, 0.9]), np.array([0.5, 0.5, 0.0])
Q = np.array([0.3, 0.9, 0.6])  # a bad model
SIDES = {  # weights, and the mean they have
    "value": ((NEW, None), NEW @ TRUTH, 1.0),
    "mirror": ((None, NEW), 1.0 - NEW @ TRUTH, 1.0),
    "difference": ((NEW, OLD), 1.0 + (NEW - OLD) @ TRUTH, 2.0),
}
OUTCOMES = [(a, r) for a in range(3) for r in (0.0, 1.0)]
CHANCES = np.array([H[a] * (TRUTH[a] if r else 1.0 - TRUTH[a]) for a, r in OUTCOMES])


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    return importlib.import_module("benchmarks.coverage")


def table(history, h=H):
    """The rows in which these arms were played."""
    start = np.arange(0, 3 * len(history), 3)
    played = np.array([a for a, _ in history])
    return LoggedArms(start, start + played, np.tile(h, len(history))), np.array(
        [r for _, r in history]
    )


def repeated(pi, n):
    return tuple(None if each is None else np.tile(each, n) for each in pi)


@pytest.mark.parametrize("kind", SIDES)
def test_payoffs_have_the_right_mean_whatever_the_model_and_are_bounded_below(kind):
    pi, mean, top = SIDES[kind]
    arms, R = table(OUTCOMES)
    phi, _ = Bettor(top).take(side(arms, repeated(pi, 6), np.tile(Q, 6), R))
    assert CHANCES @ phi == pytest.approx(np.full(len(increments.DEPTHS), mean), abs=1e-12)
    assert (phi >= -np.array(increments.DEPTHS)).all()


@pytest.mark.parametrize("least", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("kind", [*SIDES, "always"])
def test_payoffs_have_that_mean_where_only_the_played_probability_is_known(kind, least):
    """Exactly, over all outcomes: nothing may depend on which probability happens to be known."""
    always = (np.array([0.0, 1.0, 0.0]), None), TRUTH[1], 1.0
    pi, mean, top = {**SIDES, "always": always}[kind]
    arms, R = table(OUTCOMES)
    h = np.full_like(arms.h, np.nan)
    h[arms.chosen] = arms.h[arms.chosen]
    arms = arms._replace(h=h, least=least)
    phi, _ = Bettor(top).take(side(arms, repeated(pi, 6), np.tile(Q, 6), R))
    assert CHANCES @ phi == pytest.approx(np.full(len(increments.DEPTHS), mean), abs=1e-12)
    assert (phi >= -np.array(increments.DEPTHS)).all()


@pytest.mark.parametrize("kind", SIDES)
def test_capital_is_a_supermartingale_over_all_histories(kind):
    """Of three steps, with weights up to 90: its mean is at most 1 after each."""
    pi, mean, top = SIDES[kind]
    bet = np.array([0.01, 0.1, 0.5, 0.9])[:, None]
    psi = -np.log1p(-bet) - bet
    for steps in (1, 2, 3):
        total = np.zeros((4, len(increments.DEPTHS)))
        for places in itertools.product(range(6), repeat=steps):
            arms, R = table([OUTCOMES[k] for k in places])
            phi, V = Bettor(top).take(side(arms, repeated(pi, steps), np.tile(Q, steps), R))
            S = (phi.sum(axis=0) - steps * mean) / increments.scales(top)
            total += CHANCES[list(places)].prod() * np.exp(bet * S - psi * V.sum(axis=0))
        assert (total <= 1.0 + 1e-12).all()
        assert (total[0] > 0.999).all()  # and hardly less for a small bet


def test_estimates_are_unbiased_over_all_outcomes():
    arms, R = table(OUTCOMES)
    means = CHANCES @ ope.sums(arms, np.tile(NEW, 6), np.tile(Q, 6), R, clip=5.0)
    found = dict(zip(ope.SUMS, means))
    assert found["w"] == pytest.approx(1.0)
    assert found["wR"] == pytest.approx(NEW @ TRUTH)
    assert found["dr"] == pytest.approx(NEW @ TRUTH)
    assert found["dm"] == pytest.approx(NEW @ Q)
    kept = np.minimum(NEW, 5.0 * H)
    assert found["ips_c"] == pytest.approx(kept @ TRUTH)
    assert found["dr_c"] == pytest.approx(kept @ (TRUTH - Q) + NEW @ Q)
    assert found["over"] == pytest.approx((NEW - kept).sum())
    assert found["ips_c"] <= NEW @ TRUTH <= found["ips_c"] + found["over"]


def naive_estimates(rows, pi, q, clip, level):
    """Row by row and arm by arm, from the tables in the docstrings: values and half intervals."""
    z, reach = NormalDist().inv_cdf(0.5 + level / 2), math.log(2.0 / (1.0 - level))
    phi = {kind: [] for kind in ("ips", "dr", "dm", "ips clipped", "dr clipped")}
    ws, residuals, second, third = [], [], 0.0, 0.0
    for (a, r), h, p, m in rows_of(rows, pi, q):
        w, dm = p[a] / h[a], sum(x * y for x, y in zip(p, m))
        ws.append(w)
        residuals.append(r - m[a])
        second += sum(each * each / chance for each, chance in zip(p, h))
        third += sum(each**3 / chance**2 for each, chance in zip(p, h))
        phi["ips"].append(w * r)
        phi["dm"].append(dm)
        phi["dr"].append(dm + w * (r - m[a]))
        phi["ips clipped"].append(min(w, clip) * r)
        phi["dr clipped"].append(dm + min(w, clip) * (r - m[a]))
    n, ws, residuals = len(ws), np.array(ws), np.array(residuals)
    rewards = np.array([r for (_, r) in rows[0]])
    snips = np.dot(ws, rewards) / sum(ws)
    value = {kind: np.mean(each) for kind, each in phi.items()} | {"snips": snips}
    variance = {kind: np.var(each, ddof=1) / n for kind, each in phi.items()}
    variance["snips"] = sum((ws * (rewards - snips)) ** 2) / sum(ws) ** 2

    def by_design(what, most=math.inf):  # the variance of what is weighed, over all arms
        kept = sum(np.sum(h * np.minimum(p / h, most) ** 2) for _, h, p, _ in rows_of(rows, pi, q))
        return sum((ws * what) ** 2) / sum(ws**2) * kept / n**2

    floors = {"snips": by_design(rewards - snips), "dr": by_design(residuals)}
    floors["dr clipped"] = by_design(residuals, clip)
    squares = sum((ws * rewards) ** 2) / sum(ws * ws)
    floors["ips"] = (squares * second / n - value["ips"] ** 2) / n
    size = {kind: max(value["dm"], 1 - value["dm"]) for kind in ("dr", "dr clipped")}
    size |= {"snips": max(snips, 1 - snips)}
    halves = {}
    for kind, each in variance.items():
        weight = min(third / second, clip) if "clipped" in kind else third / second
        event = size.get(kind, 1.0) * weight / n
        total = max(each, floors.get(kind, 0.0))
        halves[kind] = math.sqrt(z**2 * total + (reach * event) ** 2)
    return value, halves, n**2 / second


def rows_of(rows, pi, q):
    history, h = rows
    return zip(history, h.reshape(-1, 3), pi.reshape(-1, 3), q.reshape(-1, 3))


@pytest.mark.parametrize("seed", range(5))
def test_estimates_equal_a_naive_reference(seed):
    rng = np.random.default_rng(seed)
    n, clip, level = 400, 1.5, 0.9
    h, pi = (rng.dirichlet(np.full(3, 4.0), n).ravel() for _ in range(2))
    q = 0.3 + 0.4 * rng.random(3 * n)
    history = [(int(rng.integers(3)), 0.3 + 0.4 * float(rng.random())) for _ in range(n)]
    arms, R = table(history)
    arms = arms._replace(h=h)
    total, seen = ope.sums(arms, pi, q, R, clip).sum(axis=0), overlap(arms, pi, q, R, clip)
    found = ope.estimates(total, seen, level, clip)
    value, half, effective = naive_estimates((history, h), pi, q, clip, level)
    over, over_q = ((pi - np.minimum(pi, clip * h)) @ each / n for each in (np.ones(3 * n), q))
    room = {"ips clipped": (0.0, over), "dr clipped": (over_q, over - over_q)}
    for kind, each in found.items():
        assert each.value == pytest.approx(value[kind], rel=1e-10)
        if kind != "dm":
            below, above = room.get(kind, (0.0, 0.0))
            assert each.low == pytest.approx(value[kind] - half[kind] - below, rel=1e-9)
            assert each.high == pytest.approx(value[kind] + half[kind] + above, rel=1e-9)
    assert math.isnan(found["dm"].low)
    assert seen.effective == pytest.approx(effective)
    parts = [
        Overlap(),
        *(overlap(*_rows(arms, pi, q, R, k, k + 100), clip) for k in range(0, n, 100)),
    ]
    assert functools.reduce(Overlap.plus, parts) == pytest.approx(seen)


def _rows(arms, pi, q, R, first, last):
    own = slice(3 * first, 3 * last)
    start = arms.start[first:last] - 3 * first
    chosen = arms.chosen[first:last] - 3 * first
    return LoggedArms(start, chosen, arms.h[own]), pi[own], q[own], R[first:last]


def test_a_difference_equals_a_naive_reference():
    rng, n = np.random.default_rng(6), 300
    h, one, two = (rng.dirichlet(np.full(3, 4.0), n) for _ in range(3))
    q = 0.3 + 0.4 * rng.random((n, 3))
    history = [(int(rng.integers(3)), float(rng.random() < 0.5)) for _ in range(n)]
    arms, R = table(history)
    arms = arms._replace(h=h.ravel())
    sums = Difference().columns(arms, (one.ravel(), two.ravel()), q.ravel(), R).sum(axis=0)
    seen = overlap(arms, (one - two).ravel(), q.ravel(), R)
    found = ope.difference(sums[:3], seen, 0.95)
    A, rows, gap = np.array([a for a, _ in history]), np.arange(n), one - two
    w = np.abs(gap[rows, A] / h[rows, A])
    d = (gap * q).sum(axis=1) + gap[rows, A] / h[rows, A] * (R - q[rows, A])
    second, third = (np.abs(gap) ** k / h ** (k - 1) for k in (2, 3))
    floor = (w**2 * (R - q[rows, A]) ** 2).sum() / (w**2).sum() * second.sum() / n**2
    variance = max(d.var(ddof=1) / n, floor)
    event = math.log(40.0) * third.sum() / second.sum() / n
    half = math.sqrt(1.959963984540054**2 * variance + event**2)
    assert found == pytest.approx((d.mean(), d.mean() - half, d.mean() + half))
    same = overlap(arms, np.zeros(3 * n), q.ravel(), R)
    assert ope.difference(np.array([n, 0.0, 0.0]), same, 0.95) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("n", [20, 100, 3000])
def test_without_an_event_an_interval_ends_where_the_exact_one_does(n):
    """Of n rows by the policy itself: Clopper and Pearson's, whose upper end is near log(40)/n."""
    arms, R = table([(0, 0.0)] * n, h=np.array([1.0, 0.0, 0.0]))
    pi, q = np.tile([1.0, 0.0, 0.0], n), np.zeros(3 * n)
    found = ope.estimates(
        ope.sums(arms, pi, q, R, 20.0).sum(axis=0), overlap(arms, pi, q, R), 0.95, 20.0
    )
    exact = 1.0 - 0.025 ** (1.0 / n)
    for kind in ("ips", "snips", "dr"):
        assert found[kind].low == 0.0
        assert exact <= found[kind].high < 1.11 * exact
    assert ope.events(ope.sums(arms, pi, q, R, 20.0).sum(axis=0)) == 0.0


def test_what_was_never_played_may_be_worth_anything():
    arms, R = table([(0, 1.0)] * 50, h=np.array([1.0, 0.0, 0.0]))
    pi, q = np.tile([0.0, 1.0, 0.0], 50), np.full(150, 0.5)
    seen = overlap(arms, pi, q, R)
    assert seen.effective == 0.0
    for kind, each in ope.estimates(
        ope.sums(arms, pi, q, R, 9.0).sum(axis=0), seen, 0.95, 9.0
    ).items():
        if kind in ("ips", "snips", "dr"):
            assert (each.low, each.high) == (0.0, 1.0)


def test_weights_that_were_not_drawn_count_in_what_a_log_tells():
    """One arm in 2,000 is played by the candidate in one row of ten: none of them came up."""
    n = 2000
    h = np.tile([0.5, 0.4995, 0.0005], n)
    pi = np.where((np.arange(n) % 10 == 0)[:, None], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]).ravel()
    arms, R = table([(k % 2, 0.0) for k in range(n)])
    arms, q = arms._replace(h=h), np.zeros(3 * n)
    seen = overlap(arms, pi, q, R)
    assert seen.effective == pytest.approx(n**2 / (200 / 0.0005 + 1800 / 0.4995))
    w = pi[arms.chosen] / h[arms.chosen]
    assert w.sum() ** 2 / (w * w).sum() > 40 * seen.effective  # what was drawn says
    found = ope.estimates(ope.sums(arms, pi, q, R, 20.0).sum(axis=0), seen, 0.95, 20.0)
    assert found["ips"].high == found["snips"].high == 1.0
    unknown = np.full(3 * n, np.nan)
    unknown[arms.chosen] = h[arms.chosen]
    drawn = overlap(arms._replace(h=unknown), pi, q, R)
    assert drawn.effective == pytest.approx(n**2 / (w * w).sum())


@pytest.mark.parametrize(
    "name", ["1 % clicks, 1,000 rows", "skew: 2 % of rows at 1 in 1,000", "50 rows, 2 % clicks"]
)
def test_intervals_hold_where_few_rows_carry_them(name, benchmark):
    found = benchmark.hard_coverage(benchmark.HARD[name], 150, 17)
    for kind in (*benchmark.KINDS, "difference", "sequence", "difference: sequence"):
        assert found[kind] >= 0.93, kind  # of 150 logs; the usual interval: 15 to 90 %


@pytest.mark.parametrize("oracle", ["obp", "confseq"])
def test_oracles_say_the_same(oracle, monkeypatch):
    """What `make bench-oracles` stored of them, on the same inputs."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    ours, main = (importlib.import_module(f"benchmarks.oracles.{n}") for n in ("ours", "__main__"))
    said = json.loads((main.GOLDEN / f"{oracle}.json").read_text())["says"]
    own = {"obp": ours.values_of, "confseq": ours.capital_of}[oracle]()
    assert main.compared(said, own) <= 1e-10
    assert main.compared(said, _moved(own)) > 1e-10


def _moved(own):
    """The same numbers, one of them wrong in the ninth digit."""
    if not isinstance(own, dict):
        return np.array(own) + 1e-9 * np.maximum(1.0, np.abs(own))
    name = next(iter(own))
    return own | {name: _moved(own[name])}


def test_bets_equal_a_naive_twin_in_one_piece_or_many():
    rng = np.random.default_rng(4)
    n = 30
    h, pi, q = (rng.dirichlet(np.ones(3), n).ravel() for _ in range(3))
    history = [(int(rng.integers(3)), float(rng.random() < 0.5)) for _ in range(n)]
    arms, R = table(history)
    arms = arms._replace(h=h)
    phi, V = Bettor(1.0).take(side(arms, (pi, None), q, R))
    past = [0.5]
    for k, ((a, r), h_, p, m) in enumerate(rows_of((history, h), pi, q)):
        g = p * m / h_
        for j, depth in enumerate(increments.DEPTHS):
            shrink = min(1.0, depth / g.max())
            assert phi[k, j] == pytest.approx(p[a] / h_[a] * r - shrink * (g[a] - h_ @ g))
        forecast = np.clip(np.mean(past), 0.0, 1.0)
        assert V[k, 0] == pytest.approx(
            ((phi[k, 0] - forecast) / (1.0 + increments.DEPTHS[0])) ** 2
        )
        past.append(phi[k, 0])
    bettor, parts = Bettor(1.0), []
    for cut in (slice(0, 7), slice(7, 8), slice(8, n)):
        size, own = len(R[cut]), slice(3 * cut.start, 3 * cut.stop)
        part, _ = table(history[cut])
        parts.append(bettor.take(side(part._replace(h=h[own]), (pi[own], None), q[own], R[cut])))
        assert len(parts[-1][0]) == size
    assert np.concatenate([V for _, V in parts]) == pytest.approx(V, abs=1e-14)


@pytest.mark.parametrize(("S", "V"), [(0.0, 0.0), (3.0, 5.0), (20.0, 40.0), (100.0, 3000.0)])
def test_mixture_is_the_integral_it_claims_to_be(S, V):
    rho = sequences.RHO

    def density(x):
        return (1.0 - x) ** (rho - 1.0) * math.exp(rho * x)

    def integrand(x):
        return density(x) * math.exp(x * S + V * (math.log1p(-x) + x))

    points = [0.01, 0.03, 0.1, 0.5]
    expected = quad(integrand, 0, 1, points=points, limit=500)[0] / quad(density, 0, 1)[0]
    assert sequences.log_mixture(S, V) == pytest.approx(math.log(expected), abs=1e-9)
    assert sequences.log_mixture(-1.0, V) == -np.inf


def test_the_inequality_behind_it_holds():
    y, x = np.meshgrid(np.linspace(-1.0, 50.0, 2000), np.linspace(0.0, 0.999, 300))
    psi = -np.log1p(-x) - x
    assert (np.exp(x * y - psi * y * y) <= 1.0 + x * y + 1e-12).all()


def test_the_bound_is_where_the_capital_is_one_over_alpha():
    n, phi, V = 500.0, np.array([260.0, 250.0, 255.0, 240.0]), np.array([30.0, 3.0, 0.1, 0.01])
    for alpha in (0.5, 0.05, 1e-6):
        low = float(sequences.lower(n, phi, V, alpha, 1.0))
        S = (phi - n * low) / increments.scales(1.0)
        capital = np.exp(sequences.log_mixture(S, V)).mean()
        assert capital == pytest.approx(1.0 / alpha, rel=1e-6)
    assert sequences.lower(1.0, np.zeros(4), np.zeros(4), 0.05, 1.0) < 1e-9  # nothing is known


@pytest.mark.parametrize("drift", [0.0, 1.5])
def test_coverage_of_everything_on_adaptive_logs(drift, benchmark):
    held = benchmark.coverage(60, 1500, 11, drift)
    assert held.pop(benchmark.EFFECTIVE) > 60.0
    usual = []
    for name, share in held.items():
        if "sequence" in name:
            assert share >= 0.95, name  # at all looks at once
        elif "clipped" in name:
            assert share >= 0.93, name
        else:  # of 60 logs: 95 % less 2.5 standard deviations; the benchmark has 1,000
            assert share >= 0.88, name
            usual.append(share)
    assert np.mean(usual) >= 0.93


def test_a_sequence_finds_what_is_there_and_nothing_where_nothing_is(benchmark):
    world = benchmark.World(1, 20_000, 5, 0.0)
    world.truth[:] = [0.1, 0.5, 0.1]
    rng = np.random.default_rng(0)
    world.R[0] = rng.random(world.n) < world.truth[0, world.A[0]]
    arms, R = world.log(0)
    q, pis = np.full(3 * world.n, 0.3), [world.always(k) for k in range(3)]

    def band(a, b):
        return Difference.band(Difference().columns(arms, (pis[a], pis[b]), q, R).sum(axis=0), 0.05)

    better, same, itself = band(1, 0), band(0, 2), band(0, 0)
    assert 0.3 < better.low < 0.4 < better.high
    assert same.low < 0.0 < same.high
    assert -0.005 < itself.low <= 0.0 <= itself.high < 0.005  # on the same rows nothing differs


def test_what_was_never_logged_makes_bounds_wide_and_not_wrong():
    n = 4000
    h = np.tile([1.0, 0.0, 0.0], n)
    arms, R = table([(0, 1.0)] * n)
    arms, pi = arms._replace(h=h), np.tile([0.5, 0.5, 0.0], n)
    sums = Value(20.0).columns(arms, pi, np.full(3 * n, 0.5), R).sum(axis=0)
    band = Value.band(sums, 0.05)
    assert 0.4 < band.low <= 0.5  # what is known
    assert band.high > 0.99  # the rest may be worth 0 or 1
    assert sums[ope.SUMS.index("support")] == 0.5 * n


def test_unknown_probabilities_cost_width_and_a_known_least_one_wins_it_back(benchmark):
    world = benchmark.World(1, 6000, 9, 0.0)
    arms, R = world.log(0)
    h = np.full(3 * world.n, np.nan)
    h[arms.chosen] = arms.h[arms.chosen]
    q, pi = np.full(3 * world.n, 0.3), world.always(1)

    def width(arms):
        band = Value.band(Value(20.0).columns(arms, pi, q, R).sum(axis=0), 0.05)
        assert band.low <= 0.3 <= band.high
        return band.high - band.low

    known, unknown = width(arms), width(arms._replace(h=h))
    least = width(arms._replace(h=h, least=0.2 / 3))
    assert 0.98 * known < least < 1.05 * known  # shrunk otherwise: either may be wider by a hair
    assert unknown > 1.2 * known


def test_the_size_of_a_trial_that_is_looked_at_once(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    gate = importlib.import_module("benchmarks.promotion")
    size = 141_587  # (0.51975 + 0.0527778) (2.486475 / 0.005)^2
    assert gate.fixed_size(0.1, 0.1, 0.05) == size
    found = plan(0.005, share=0.1, value=0.05, level=0.9).once.eighty  # two sides of 5 %
    assert found == pytest.approx(size, rel=1e-4)


def check(arms, names=("a", "b", "c")):
    counts = propensity_check.Ratios()
    counts.add(arms, np.tile(np.arange(3), len(arms.start)))
    return counts.check(names)


def test_right_probabilities_are_not_doubted(benchmark):
    world = benchmark.World(150, 1000, 21, 0.0)
    p = np.array([check(world.log(k)[0]).p for k in range(150)])
    assert (p < 0.05).mean() <= 0.1
    assert p.min() > propensity_check.DOUBTFUL


def test_wrong_probabilities_are_doubted_and_named(benchmark):
    arms, _ = benchmark.World(1, 3000, 22, 0.0).log(0)
    swapped = arms.h.reshape(-1, 3)[:, [1, 2, 0]].ravel()
    assert check(arms._replace(h=swapped)).doubtful
    fair = LoggedArms(arms.start, arms.chosen, np.full(9000, 1 / 3))  # claims to be a fair test
    found = check(fair)
    assert found.doubtful
    assert "was played" in found.what
    only = np.full(9000, np.nan)
    only[arms.chosen] = 0.5 * arms.h[arms.chosen]  # half of what it was
    assert check(arms._replace(h=only)).doubtful
    only[arms.chosen] = 1.0  # no exploration: other arms have 0, which is no contradiction
    assert not check(arms._replace(h=only)).doubtful


def test_plans():
    found = plan(0.02, exploration=0.2, arms=10, value=0.05)
    variance = (0.05 * 0.95 + 0.07 * 0.93) / 0.02
    z = 1.959963984540054 + 0.8416212335729143
    assert found.once.eighty == math.ceil(variance * (z / 0.02) ** 2)
    assert found.once.fifty == math.ceil(variance * (1.959963984540054 / 0.02) ** 2)
    assert found.once.eighty < found.watched.fifty < found.watched.eighty < 4 * found.once.eighty
    half = plan(0.01, exploration=0.2, arms=10, value=0.05)
    assert half.once.fifty > 3.5 * found.once.fifty
    more = plan(0.02, exploration=0.4, arms=10, value=0.05)
    assert more.once.fifty < 0.51 * found.once.fifty
    seldom = plan(0.02, exploration=0.2, arms=10, value=0.05, differ=0.5)
    assert seldom.once.fifty < 0.51 * found.once.fifty
    assert planning.rows_until(1.0, np.ones(4), np.ones(4), 0.05) == math.inf  # no effect


def test_a_plan_of_a_trial_has_the_chances_it_says():
    """By a naive trial: of two arms, the candidate's has this share of decisions."""
    share, value, effect = 0.2, 0.3, 0.1
    found = plan(effect, share=share, value=value)
    rng, runs = np.random.default_rng(8), 300
    seen = np.zeros((2, 2))  # (once, watched) x (50 %, 80 %)
    n = found.watched.eighty
    start = np.arange(0, 2 * n, 2)
    new, live = (np.tile(each, n) for each in ([1.0, 0.0], [0.0, 1.0]))
    for _ in range(runs):
        played = (rng.random(n) >= share).astype(int)
        R = (rng.random(n) < np.where(played == 0, value + effect, value)).astype(float)
        arms = LoggedArms(start, start + played, np.tile([share, 1.0 - share], n))
        sums = Difference().columns(arms, (new, live), np.full(2 * n, value), R).cumsum(axis=0)
        for k in range(2):
            seen[0, k] += usual(sums[found.once[k] - 1][:3]) > 0.0
            looks = sums[: found.watched[k]][:: max(1, n // 60)]
            seen[1, k] += (Difference.band(looks, 0.05).low > 0.0).any()
    assert seen[0] / runs == pytest.approx([0.5, 0.8], abs=0.1)
    assert (seen[1] / runs > np.array([0.5, 0.8]) - 0.1).all()
    assert seen[1, 0] / runs < 0.75


def usual(sums):
    """The lower end of the interval of a mean."""
    n, d, dd = sums
    return d / n - 1.96 * math.sqrt((dd / n - (d / n) ** 2) / n)


def test_rows_that_are_still_needed_lie_in_their_range_about_two_times_in_three():
    rng, n, share = np.random.default_rng(9), 400, 0.5
    start, inside = np.arange(0, 2 * 12_000, 2), []
    for _ in range(60):
        played = (rng.random(12_000) >= share).astype(int)
        R = (rng.random(12_000) < np.where(played == 0, 0.5, 0.4)).astype(float)
        arms = LoggedArms(start, start + played, np.full(24_000, share))
        pis = tuple(np.tile(each, 12_000) for each in ([1.0, 0.0], [0.0, 1.0]))
        sums = Difference().columns(arms, pis, np.full(24_000, 0.45), R).cumsum(axis=0)
        shown = Difference.band(sums[::100], 0.05).low > 0.0
        when = 100 * int(np.argmax(shown)) if shown.any() else math.inf
        if when > n:
            bets = Difference.bets(sums[n - 1], better=True)
            fewest, most = planning.rows_between(float(n), *bets, 0.05)
            inside.append(fewest <= when <= most)
    assert len(inside) > 40
    assert 0.5 < np.mean(inside) < 0.9


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"effect": 0.0}, "effect"),
        ({"exploration": 1.5}, "exploration"),
        ({"arms": 0}, "arms"),
        ({"level": 1.0}, "level"),
        ({"value": math.nan}, "value"),
        ({"share": 0.1}, "pass share=, the share of a trial, or both"),
        ({"arms": None}, "pass share=, the share of a trial, or both"),
        ({"share": 1.0, "exploration": None, "arms": None}, "share"),
    ],
)
def test_impossible_plans_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        plan(**({"effect": 0.1, "exploration": 0.1, "arms": 5} | options))
