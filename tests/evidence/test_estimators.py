"""Estimators and confidence sequences: naive twins, exact expectations, coverage."""

import importlib
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from driftbandit import plan
from driftbandit.estimators import increments, ope, planning, propensity_check, sequences
from driftbandit.estimators.accumulators import Difference, Value
from driftbandit.estimators.increments import Bettor, LoggedArms, side

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
    assert found["wR"] == found["dr"] == pytest.approx(NEW @ TRUTH)
    assert found["dm"] == pytest.approx(NEW @ Q)
    kept = np.minimum(NEW, 5.0 * H)
    assert found["ips_c"] == pytest.approx(kept @ TRUTH)
    assert found["dr_c"] == pytest.approx(kept @ (TRUTH - Q) + NEW @ Q)
    assert found["over"] == pytest.approx((NEW - kept).sum())
    assert found["ips_c"] <= NEW @ TRUTH <= found["ips_c"] + found["over"]


def naive_estimates(rows, pi, q, clip, z):
    """Row by row, from the table in the docstring."""
    phi = {kind: [] for kind in ("ips", "dr", "dm", "ips clipped", "dr clipped")}
    ws = []
    for (a, r), h, p, m in rows_of(rows, pi, q):
        w, dm = p[a] / h[a], sum(x * y for x, y in zip(p, m))
        ws.append(w)
        phi["ips"].append(w * r)
        phi["dm"].append(dm)
        phi["dr"].append(dm + w * (r - m[a]))
        phi["ips clipped"].append(min(w, clip) * r)
        phi["dr clipped"].append(dm + min(w, clip) * (r - m[a]))
    out = {k: (np.mean(v), z * np.std(v, ddof=1) / math.sqrt(len(v))) for k, v in phi.items()}
    rewards = np.array([r for (_, r) in rows[0]])
    snips = np.dot(ws, rewards) / sum(ws)
    spread = math.sqrt(sum((w * (r - snips)) ** 2 for w, r in zip(ws, rewards))) / sum(ws)
    return out | {"snips": (snips, z * spread)}, sum(ws) ** 2 / sum(w * w for w in ws)


def rows_of(rows, pi, q):
    history, h = rows
    return zip(history, h.reshape(-1, 3), pi.reshape(-1, 3), q.reshape(-1, 3))


def test_estimates_equal_a_naive_twin():
    rng = np.random.default_rng(3)
    n = 40
    h, pi = (rng.dirichlet(np.ones(3), n).ravel() for _ in range(2))
    q = rng.random(3 * n)
    history = [(int(rng.integers(3)), float(rng.random())) for _ in range(n)]
    arms, R = table(history)
    total = ope.sums(arms._replace(h=h), pi, q, R, clip=1.5).sum(axis=0)
    found = ope.estimates(total, 0.9)
    naive, effective = naive_estimates((history, h), pi, q, 1.5, 1.6448536269514722)
    for kind, (value, half) in naive.items():
        assert found[kind].value == pytest.approx(value, rel=1e-10)
        if kind in ("ips", "dr", "snips"):
            assert found[kind].high - found[kind].value == pytest.approx(half, rel=1e-9)
    assert math.isnan(found["dm"].low)
    assert ope.effective(total) == pytest.approx(effective)


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
    for name, share in held.items():
        if "sequence" in name:
            assert share >= 0.95, name  # at all looks at once
        elif "clipped" in name:
            assert share >= 0.93, name
        else:  # of 60 logs: 95 % less 4 standard deviations
            assert 0.83 <= share <= 1.0, name


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


def test_the_promotion_gate_opens_for_the_better_and_for_nobody_else(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    gate = importlib.import_module("benchmarks.promotion")
    n = 3 * gate.fixed_size(0.5)
    assert all(gate.promoted(n, 0.5, seed) for seed in range(4))  # a test of fixed size: 80 %
    for effect in (0.0, -0.5):
        assert not any(gate.promoted(n, effect, seed) for seed in range(8))
    assert gate.fixed_size(0.1) == 141_587  # (0.51975 + 0.0527778) (2.486475 / 0.005)^2


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
    assert found.once == math.ceil(variance * (z / 0.02) ** 2)
    assert found.once < found.watched < 3 * found.once  # the promise of the promotion gate
    assert plan(0.01, exploration=0.2, arms=10, value=0.05).once > 3.5 * found.once
    assert plan(0.02, exploration=0.4, arms=10, value=0.05).once < 0.51 * found.once
    assert plan(0.02, exploration=0.2, arms=10, value=0.05, differ=0.5).once < 0.51 * found.once
    assert planning.rows_until(1.0, np.ones(4), np.ones(4), 0.05) == math.inf  # no effect


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"effect": 0.0}, "effect"),
        ({"exploration": 1.5}, "exploration"),
        ({"arms": 0}, "arms"),
        ({"level": 1.0}, "level"),
        ({"value": math.nan}, "value"),
    ],
)
def test_impossible_plans_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        plan(**({"effect": 0.1, "exploration": 0.1, "arms": 5} | options))
