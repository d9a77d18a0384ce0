"""A loop over three topics, whose clock and training are the test's own."""

from driftbandit import DOMD, Category, Loop, Reward

CLICKS = Reward(0, 1, wait=50, missing=0)
TOPIC = Category(["x", "y", "z"])
ARMS = {topic: {"topic": topic} for topic in "xyz"}


def opened(path, **options):
    new = {
        "reward": CLICKS,
        "policy": DOMD,
        "clock": "events",
        "training": "inline",
        "exploration": 0.3,
    }
    return Loop(path, **(new | options))
