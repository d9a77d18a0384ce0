"""vowpal-wabbit-next: cb_explore_adf, one text example an arm, parsed once a round."""

from __future__ import annotations

import random

from vowpal_wabbit_next import CBLabel, TextFormatParser, Workspace

from benchmarks.peers.learner import Task


class Adf:
    def __init__(self, task: Task, options: str):
        arguments = f"--cb_explore_adf {options} --random_seed {task.seed}"
        self.workspace = Workspace(arguments.split())
        self.parse = TextFormatParser(self.workspace).parse_line
        self.pick = random.Random(task.seed).choices

    def choose(self, arms):
        self.examples = [
            self.parse("|a " + " ".join([f"{j}:{value:.6f}" for j, value in enumerate(row)]))
            for row in arms.tolist()
        ]
        self.probabilities = dict(self.workspace.predict_one(self.examples))
        return self.pick(list(self.probabilities), self.probabilities.values())[0]

    def update(self, arms, arm, reward):
        label = CBLabel(label=(0, -reward, self.probabilities[arm]))
        self.examples[arm].set_label(label)
        self.workspace.learn_one(self.examples)

    def size(self):
        return len(self.workspace.serialize())


LEARNERS = {"adf": Adf}
