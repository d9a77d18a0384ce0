"""Rewards that are lost more often for one arm: how often the test errs, and what it finds."""

import numpy as np
import pytest

from driftbandit.loop.candidates.lost_rewards import TILTS, LostRewards

ARMS = ["a", "b", "c", "d"]


def played(seed, rounds, kept):
    """Lost decisions under probabilities that change with the past; `kept` is the chance that the
    reward of the first arm arrives all the same."""
    rng, counts, h = np.random.default_rng(seed), LostRewards(), np.full(4, 0.25)
    told = []
    for _ in range(rounds):
        chosen = int(rng.choice(4, p=h))
        if chosen == 0 and rng.random() < kept:
            continue
        counts.add("missing", ARMS, h, chosen)
        told.append(counts.unequal())
        h = np.full(4, 0.1)
        h[chosen] = 0.7  # what was lost last is played most
    return counts, told


def test_equal_losses_are_told_apart_seldom_at_any_moment():
    alarms = sum(any(played(seed, 200, 0.0)[1]) for seed in range(100))
    assert alarms <= 3  # FAIR of 100 runs is 1


@pytest.mark.parametrize(("kept", "often"), [(0.7, "less")])
def test_an_arm_that_loses_less_often_is_named(kept, often):
    for seed in range(5):
        found = played(seed, 600, kept)[0].unequal()
        assert [(each.arm, each.often) for each in found if each.arm == "a"] == [("a", often)]
        assert found[0].lost < found[0].expected


def test_evidence_is_the_likelihood_ratio_of_tilted_arms():
    rng, counts, ratio = np.random.default_rng(0), LostRewards(), np.ones(len(TILTS))
    for _ in range(50):
        h = rng.dirichlet(np.ones(4))
        chosen = int(rng.choice(4, p=h))
        counts.add("late", ARMS, h, chosen)
        tilted = np.where(np.arange(4) == 1, np.exp(TILTS)[:, None], 1.0) * h
        ratio *= (tilted / tilted.sum(axis=1, keepdims=True))[:, chosen] / h[chosen]
    rows = {arm: rest for arm, *rest in counts.state()["late"]}
    np.testing.assert_allclose(rows["b"][2], np.log(ratio), rtol=1e-12)


def test_it_goes_on_from_a_checkpoint_and_from_an_older_one():
    counts = played(3, 300, 0.7)[0]
    again = LostRewards.loaded(counts.state())
    assert again.state() == counts.state()
    assert again.unequal() == counts.unequal() != []
    older = {why: {arm: (n, p) for arm, n, p, _ in rows} for why, rows in counts.state().items()}
    begun = LostRewards.loaded(older)
    assert begun.unequal() == []  # the test begins anew, the counts do not
    assert begun.most("missing")[1][:2] == counts.most("missing")[1][:2]
