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
BLOCKS, BLOCK, GROUP = 20, 500, 50
FEATURES = Features(arm={"topic": Category(["x", "y"])})
ARMS = {topic: {"topic": topic} for topic in "xy"}


def cost(step, size):
    """CPU seconds of a block: the least of many."""
    spent = []
    for _ in range(BLOCKS):
        tic = time.process_time()
        for _ in range(BLOCK // size):
            step()
        spent.append(time.process_time() - tic)
    return min(spent)


def grown(step, memory, size=1):
    """Cost and memory after many steps, over those after few; a step is `size` decisions."""
    for _ in range(EARLY // size):
        step()
    gc.collect()
    before, held = cost(step, size), memory()
    for _ in range((LATE - EARLY) // size):
        step()
    gc.collect()
    held = memory() / held
    after = min(cost(step, size) for _ in range(3))  # a busy machine only ever makes it longer
    return after / before, held


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
def test_a_bandit(policy):
    bandit, rng = Bandit(policy(problem=Problem(dim=4))), np.random.default_rng(0)
    arms, luck, count = rng.uniform(-0.5, 0.5, (64, 3, 4)), rng.random(4096), [0]
    chance = 1.0 / (1.0 + np.exp(-arms @ np.array([0.5, -0.3, 0.2, 0.0])))  # inside the ball

    def step():
        k = count[0] = count[0] + 1
        arm = bandit.choose(arms[k % 64])
        bandit.update(arms[k % 64, arm], float(luck[k % 4096] < chance[k % 64, arm]))

    time_, memory = grown(step, lambda: bandit.memory_bytes)
    assert memory == 1.0
    assert time_ < 1.1


def test_a_loop(tmp_path):
    """Decisions with their rewards and their training, stored in a file."""
    count, process, rng = [0], psutil.Process(), np.random.default_rng(0)
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.1}
    with Loop(tmp_path / "a.db", features=FEATURES, reward=Reward(0, 1), **options) as loop:

        def step():
            ids = [f"{count[0] + k:012d}" for k in range(GROUP)]
            count[0] += GROUP
            at = float(count[0])
            asked = [{"context": {}, "arms": ARMS, "id": id, "at": at} for id in ids]
            made = loop.submit_many([("decide", each) for each in asked])
            likes = rng.random(GROUP) < 0.4
            said = [{"id": d.id, "value": float(v), "at": at} for d, v in zip(made, likes)]
            loop.submit_many([("reward", each) for each in said])

        time_, memory = grown(step, lambda: process.memory_info().rss, GROUP)
        assert loop.counts["decide"] == count[0]
    assert memory < 1.1
    assert time_ < 1.1
