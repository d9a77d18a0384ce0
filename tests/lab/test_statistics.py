"""Statistics of paired runs and of many worlds, against SciPy and against the definitions."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from driftbandit.lab.report.aggregate import aggregates, draw_profiles, normalised_runs, profiles
from driftbandit.lab.report.statistics import (
    geometric_mean_of_ratios,
    half_width,
    holm,
    interquartile_mean,
    leaders,
    optimality_gap,
    paired_difference,
    performance_profile,
    stratified_interval,
)


@pytest.mark.parametrize("seed", range(5))
def test_the_paired_difference_is_scipys_on_the_seeds_that_both_have(seed):
    rng = np.random.default_rng(seed)
    mine, base = rng.normal(3.0, 1.0, 20), rng.normal(2.5, 1.0, 20)
    mine[:4], base[2:7] = np.nan, np.nan
    found, theirs = paired_difference(mine, base), stats.ttest_rel(mine[7:], base[7:])
    interval = theirs.confidence_interval()
    assert found.n == 13
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_differences_without_a_test_have_no_interval():
    one = paired_difference([3.0, np.nan], [1.0, 2.0])
    assert (one.mean, one.n) == (2.0, 1)
    assert np.isnan([one.low, one.high, one.p]).all()
    assert paired_difference([np.nan], [1.0]).n == 0
    assert paired_difference([1.0, 1.0], [1.0, 1.0]).p == 1.0
    assert paired_difference([2.0, 2.0], [1.0, 1.0]).p == 0.0
    assert np.isnan(half_width(1.0, 1))


def naive_holm(p, level):
    """Reject from the smallest on, each at level / (tests that are left), until one is kept."""
    rejected = np.zeros(len(p), dtype=bool)
    for rank, k in enumerate(np.argsort(p)):
        if p[k] > level / (len(p) - rank):
            break
        rejected[k] = True
    return rejected


@pytest.mark.parametrize("seed", range(10))
def test_holm_rejects_what_stepping_down_rejects(seed):
    p = np.random.default_rng(seed).uniform(0.0, 1.0, 9) ** 3
    for level in (0.01, 0.05, 0.2):
        np.testing.assert_array_equal(holm(p) <= level, naive_holm(p, level))
    with_gap = holm([*p, np.nan])
    assert np.isnan(with_gap[-1])
    np.testing.assert_allclose(with_gap[:-1], holm(p))


def test_what_is_not_told_from_the_best_shares_its_mark():
    rng = np.random.default_rng(0)
    tape = rng.normal(0.0, 50.0, 20)  # what all meet
    noise = rng.normal(0.0, 1.0, (4, 20))
    regrets = np.array([100.0, 100.2, 110.0, 150.0])[:, None] + tape + noise
    assert leaders(regrets).tolist() == [True, True, False, False]
    assert leaders(regrets[::-1]).tolist() == [False, False, True, True]
    few = regrets.copy()
    few[2:, 2:] = np.nan  # two seeds tell nothing apart
    assert leaders(few).all()
    assert leaders(np.array([100.0, 100.0, 100.0])[:, None] + noise[:3]).all()
    assert not leaders(regrets[:, :1]).any()  # one seed tells nothing
    assert leaders(regrets[:1]).tolist() == [True]


def test_a_ladder_of_close_policies_marks_only_what_is_close_to_the_best():
    # Each is close to its neighbours, so no gap divides them; the last is far from the first.
    rng = np.random.default_rng(4)
    ladder = np.linspace(60.0, 200.0, 37)[:, None] + rng.normal(0.0, 15.0, (37, 20))
    marked = leaders(ladder)
    best = ladder.mean(axis=1).argmin()
    assert marked[best]
    assert marked.sum() < 12
    assert not marked[25:].any()
    apart = naive_holm(
        [stats.ttest_rel(row, ladder[best]).pvalue for k, row in enumerate(ladder) if k != best],
        0.05,
    )
    assert np.delete(marked, best).tolist() == [not rejected for rejected in apart]
    far = np.array([61.0, 563.0])[:, None] + rng.normal(0.0, 40.0, (2, 20))
    assert leaders(far).tolist() == [True, False]


def test_fewer_seeds_are_compared_on_those_and_absence_is_no_advantage():
    rng = np.random.default_rng(1)
    hard = np.r_[np.zeros(5), np.full(15, 100.0)]  # seeds from 5 on are hard
    regrets = 50.0 + hard + rng.normal(0.0, 1.0, (2, 20))
    regrets[1] += 10.0
    regrets[1, 5:] = np.nan  # the worse policy met the easy seeds only: its plain mean is less
    assert np.nanmean(regrets[1]) < np.nanmean(regrets[0])
    assert leaders(regrets).tolist() == [True, False]


def test_middle_and_tail_are_their_definitions():
    runs = np.random.default_rng(2).gamma(2.0, 0.2, (7, 9))
    assert interquartile_mean(runs) == pytest.approx(stats.trim_mean(runs, 0.25, axis=None))
    assert optimality_gap(runs) == pytest.approx(runs.mean())
    assert optimality_gap(runs, 0.3) == pytest.approx(
        np.mean([max(r - 0.3, 0.0) for r in runs.ravel()])
    )
    shares = performance_profile(runs, [0.0, 0.2, 5.0])
    np.testing.assert_allclose(shares, [(runs <= tau).mean() for tau in (0.0, 0.2, 5.0)])


def test_the_stratified_bootstrap_covers_and_knows_its_strata():
    rng = np.random.default_rng(3)
    levels = np.linspace(0.0, 10.0, 6)[:, None]
    inside = 0
    for k in range(60):
        runs = levels + rng.normal(0.0, 1.0, (6, 20))
        low, high = stratified_interval(np.mean, runs, draws=300, seed=k)
        inside += low <= 5.0 <= high
        # Between worlds there is no chance: without strata it would be six times as wide.
        assert high - low < 0.6
    assert inside >= 50
    assert stratified_interval(np.mean, levels + np.zeros((6, 4)), draws=10) == (5.0, 5.0)


def test_ratios_are_of_means_world_by_world():
    pairs = np.ones((2, 3, 2))
    pairs[0, :, 0], pairs[1, :, 0] = [1.0, 2.0, 3.0], 8.0
    assert geometric_mean_of_ratios(pairs) == pytest.approx(4.0)


def table(worlds=6, seeds=8):
    """Final regrets in worlds of very different size: A has 0.1 of Uniform's, B 0.4; one world
    lacks C."""
    rng, rows = np.random.default_rng(4), []
    for w in range(worlds):
        size = 10.0 ** (w + 1)
        for policy, share in (("A", 0.1), ("B", 0.4), ("C", 0.2), ("Uniform", 1.0)):
            for seed in range(seeds if policy != "B" else 5):
                if policy != "C" or w:
                    regret = size * share * rng.uniform(0.9, 1.1)
                    rows.append((f"world {w}", policy, seed, regret))
    return pl.DataFrame(rows, schema=["environment", "policy", "seed", "regret"], orient="row")


def test_many_worlds_are_normalised_on_shared_seeds(tmp_path):
    runs = normalised_runs(table(), "A")
    assert (runs.scale, runs.left_out) == ("Uniform", 1)
    assert {policy: r.shape for policy, r in runs.by_policy.items()} == dict.fromkeys(
        ("A", "B", "Uniform"), (6, 5)
    )
    found = {row["policy"]: row for row in aggregates(runs).to_dicts()}
    assert list(found) == ["A", "B", "Uniform"]  # best first
    for policy, share in (("A", 0.1), ("B", 0.4), ("Uniform", 1.0)):
        for name in ("iqm", "gap"):
            assert found[policy][name] == pytest.approx(share, rel=0.1)
            assert (
                found[policy][f"{name}_low"] <= found[policy][name] <= found[policy][f"{name}_high"]
            )
    profile = profiles(runs).filter((pl.col("policy") == "B") & (pl.col("threshold") > 0.5))
    assert (profile["share"] == 1.0).all()
    assert draw_profiles(runs, tmp_path)["pdf"].stat().st_size > 1000


def test_few_worlds_or_no_shared_seed_have_no_average():
    assert normalised_runs(table(worlds=4), "A") is None
    apart = table().with_columns(
        seed=pl.when(pl.col("policy") == "B").then(pl.col("seed") + 100).otherwise("seed")
    )
    assert normalised_runs(apart, "A") is None
    without = table().filter(pl.col("policy") != "Uniform")
    assert normalised_runs(without, "A").scale == "A"
    assert normalised_runs(without, "C") is None
