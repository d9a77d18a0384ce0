"""Constant time and memory: a decision after 100,000 costs what it cost after 1,000.

Whatever joins the path of a decision must keep this, so the test stands here and grows with it.
"""

import gc
import time
from contextlib import ExitStack

import numpy as np
import psutil
import pytest

from driftbandit import DOMD, AutoDOMD, Bandit, Category, Features, Loop, Problem, Reward

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

EARLY, LATE = 1_000, 100_000
BLOCKS, BLOCK, GROUP = 50, 200, 50
FEATURES = Features(arm={"topic": Category(["x", "y"])})
ARMS = {topic: {"topic": topic} for topic in "xy"}


def cost(step, size):
    """CPU seconds of a block."""
    tic = time.process_time()
    for _ in range(BLOCK // size):
        step()
    return time.process_time() - tic


def grown(made, size=1):
    """Cost of a step after many decisions over that after few. Young and old take turns, so that
    both meet the same neighbours on the machine; the middle of many ratios counts."""
    young, old = made(EARLY // size), made(LATE // size)
    both = [(cost(young, size), cost(old, size)) for _ in range(BLOCKS)]
    return float(np.median([many / few for few, many in both]))


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
def test_a_bandit(policy):
    rng, sizes = np.random.default_rng(0), []
    arms, luck = rng.uniform(-0.5, 0.5, (64, 3, 4)), rng.random(4096)
    chance = 1.0 / (1.0 + np.exp(-arms @ np.array([0.5, -0.3, 0.2, 0.0])))  # inside the ball

    def made(steps):
        bandit, count = Bandit(policy(problem=Problem(dim=4))), [0]

        def step():
            k = count[0] = count[0] + 1
            arm = bandit.choose(arms[k % 64])
            bandit.update(arms[k % 64, arm], float(luck[k % 4096] < chance[k % 64, arm]))

        for _ in range(steps):
            step()
        sizes.append(bandit.memory_bytes)
        return step

    assert grown(made) < 1.1
    assert sizes[0] == sizes[1]


def test_a_loop(tmp_path):
    """Decisions with their rewards and their training, stored in a file."""
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.1}
    process, held, rng = psutil.Process(), [], np.random.default_rng(0)
    with ExitStack() as stack:

        def made(steps):
            path = tmp_path / f"{steps}.db"
            loop = Loop(path, features=FEATURES, reward=Reward(0, 1), **options)
            stack.enter_context(loop)
            count = [0]

            def step():
                ids = [f"{count[0] + k:012d}" for k in range(GROUP)]
                count[0] += GROUP
                at = float(count[0])
                asked = [{"context": {}, "arms": ARMS, "id": id, "at": at} for id in ids]
                decisions = loop.submit_many([("decide", each) for each in asked])
                likes = zip(decisions, rng.random(GROUP) < 0.4)
                said = [{"id": d.id, "value": float(v), "at": at} for d, v in likes]
                loop.submit_many([("reward", each) for each in said])

            for _ in range(steps):
                step()
            gc.collect()
            held.append(process.memory_info().rss)
            return step

        assert grown(made, GROUP) < 1.1
    assert held[1] < 1.1 * held[0]
