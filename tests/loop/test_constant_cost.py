"""Constant time and memory: a decision after 100,000 costs what it cost after 1,000.

Whatever joins the path of a decision must keep this, so the test stands here and grows with it.
"""

import gc
import time

import numpy as np
import psutil
import pytest

from driftbandit import DOMD, AutoDOMD, Bandit, Category, Features, Loop, Problem, Reward

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

EARLY, LATE = 1_000, 100_000
BLOCKS, BLOCK = 30, 100
FEATURES = Features(arm={"topic": Category(["x", "y"])})
ARMS = {topic: {"topic": topic} for topic in "xy"}


def cost(step):
    """CPU seconds of a block: the least of many, for other programs only ever make one longer."""
    spent = []
    for _ in range(BLOCKS):
        tic = time.process_time()
        for _ in range(BLOCK):
            step()
        spent.append(time.process_time() - tic)
    return min(spent)


def grown(step, memory):
    """Cost and memory after many steps, over those after few."""
    for _ in range(EARLY):
        step()
    gc.collect()
    before = cost(step), memory()
    for _ in range(LATE - EARLY - 2 * BLOCKS * BLOCK):
        step()
    gc.collect()
    after = cost(step), memory()
    return [late / early for early, late in zip(before, after)]


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
def test_a_bandit(policy):
    bandit, rng = Bandit(policy(problem=Problem(dim=4))), np.random.default_rng(0)
    arms = rng.uniform(-0.5, 0.5, (64, 3, 4))
    count = [0]

    def step():
        count[0] += 1
        X = arms[count[0] % 64]
        bandit.update(X[bandit.choose(X)], float(count[0] % 3 == 0))

    time_, memory = grown(step, lambda: bandit.memory_bytes)
    assert memory == 1.0
    assert time_ < 1.1


def test_a_loop(tmp_path):
    """Decisions with their rewards and their training, stored in a file."""
    count, process = [0], psutil.Process()
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.1}
    with Loop(tmp_path / "a.db", features=FEATURES, reward=Reward(0, 1), **options) as loop:

        def step():
            count[0] += 1
            made = loop.decide({}, ARMS, id=f"{count[0]:012d}", at=float(count[0]))
            loop.reward(made.id, float(made.arm == "x"), at=float(count[0]))

        time_, memory = grown(step, lambda: process.memory_info().rss)
        assert loop.counts["decide"] == count[0]
    assert memory < 1.1
    assert time_ < 1.1
