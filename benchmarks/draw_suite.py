"""Print a suite of environments drawn at random: `python -m benchmarks.draw_suite > FILE`.

It made `suite-3`, which is frozen since then. The draws of the suite judge; design draws begin at
1000 (`random_environment(1000)`), so that nothing is tuned on what judges.
"""

from __future__ import annotations

import argparse
import json

from driftbandit import Composite, Uniform, random_environment, simulate
from driftbandit.lab.run.suite import REFERENCE, toml_value

NAME, DRAWS, SEEDS, FIRST_SEED, HORIZON = "suite-3", 40, 6, 70000, 3000
HEAD = """\
# Frozen: every number below is part of what a score on {name} means. Another choice is another
# suite.
# Environments 0 to {last} of `random_environment`, made by benchmarks/draw_suite.py. Nothing may be
# tuned on them: design draws begin at 1000.

name = "{name}"
title = "{draws} environments drawn at random, {seeds} seeds, {horizon} rounds"
horizon = {horizon}
seeds = {seeds}
first_seed = {first}
points = 2
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    draws = parser.parse_args().draws
    print(
        HEAD.format(
            name=NAME, last=draws - 1, draws=draws, seeds=SEEDS, horizon=HORIZON, first=FIRST_SEED
        )
    )
    reference = {}
    for draw in range(draws):
        world = random_environment(draw, horizon=HORIZON)
        label = f"draw {draw}: {', '.join(world.axes)}"
        plain = Composite(horizon=HORIZON).to_dict()
        options = {k: v for k, v in world.to_dict().items() if k == "type" or v != plain[k]}
        print("[[environments]]")
        for key, value in (options | {"label": label}).items():
            print(f"{key} = {toml_value(value)}")
        print()
        seeds = range(FIRST_SEED, FIRST_SEED + SEEDS)
        run = simulate(Uniform(problem=world.problem), world, seeds)
        reference[label] = round(float(run.total.mean()), 1)
    print(REFERENCE.strip())
    for label, regret in reference.items():
        print(f"{json.dumps(label)} = {regret}")


if __name__ == "__main__":
    main()
