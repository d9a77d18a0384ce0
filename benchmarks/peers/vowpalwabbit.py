"""Vowpal Wabbit's own Python package: cb_explore_adf, one text example an arm.

Examples are parsed once a round and labelled before learning, which its API allows and which
saves a third of the time of its tutorial's way (`Tutorial`: the same text twice).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from vowpalwabbit import Workspace

from benchmarks.peers.learner import Task


def text(arms) -> list[str]:
    """An arm a line; six digits, because VW's weights and features are single precision."""
    return [
        "|a " + " ".join([f"{j}:{value:.6f}" for j, value in enumerate(row) if value])
        for row in arms.tolist()
    ]


class Adf:
    def __init__(self, task: Task, options: str):
        self.vw = Workspace(f"--cb_explore_adf {options} --quiet --random_seed {task.seed}")
        self.pick, self.indices = random.Random(task.seed).choices, range(task.count)

    def choose(self, arms):
        self.examples = self.vw.parse(text(arms))
        self.probabilities = self.vw.predict(self.examples)
        return self.pick(self.indices, self.probabilities)[0]

    def update(self, arms, arm, reward):
        self.examples[arm].set_label_string(f"0:{-reward}:{self.probabilities[arm]}")
        self.vw.learn(self.examples)
        self.vw.finish_example(self.examples)

    def size(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.vw"
            self.vw.save(str(path))
            return path.stat().st_size


class Tutorial(Adf):
    def choose(self, arms):
        self.lines = text(arms)
        self.probabilities = self.vw.predict(self.lines)
        return self.pick(self.indices, self.probabilities)[0]

    def update(self, arms, arm, reward):
        self.lines[arm] = f"0:{-reward}:{self.probabilities[arm]} {self.lines[arm]}"
        self.vw.learn(self.lines)


LEARNERS = {"adf": Adf, "adf as in the tutorial": Tutorial}
