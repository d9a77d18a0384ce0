"""Short trajectories that must never change by accident.

If one has to change, run `python tests/policies/test_golden.py` (for the rivals
`tests/policies/test_contract.py`), and say so under "Numerical changes" in CHANGELOG.md.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    GLBOMD,
    Circle,
    FixedArms,
    Gaussian,
    Greedy,
    SignFlip,
    Uniform,
    simulate,
)

FOLDER = Path(__file__).parents[1] / "golden"
DRIFT = Circle(horizon=120, dim=3, radius=2.0)
FLIP = SignFlip(horizon=120, dim=4, family=Gaussian(0.5, 5.0), arms=FixedArms(6))
CASES = {
    f"{kind.__name__}-{world.name}": (kind, world)
    for kind in (DOMD, GLBOMD, Greedy, Uniform)
    for world in (DRIFT, FLIP)
}


def trajectory(kind, world):
    """Totals and marks along the way: enough to notice, small enough to read."""
    run = simulate(kind.from_theory(world.problem), world, seeds=(0, 1))
    return {
        "choices": run.choices[:, 20:40].tolist(),  # past the first rounds, where unit arms tie
        "regret": np.round(run.total, 9).tolist(),
        "rewards": np.round(run.rewards.sum(axis=1), 9).tolist(),
    }


@pytest.mark.parametrize("case", CASES)
def test_trajectory_is_the_stored_one(case):
    stored = json.loads((FOLDER / f"{case}.json").read_text())
    found = trajectory(*CASES[case])
    assert found["choices"] == stored["choices"]
    np.testing.assert_allclose(found["regret"], stored["regret"], rtol=1e-7)
    np.testing.assert_allclose(found["rewards"], stored["rewards"], rtol=1e-7)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, case in CASES.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(trajectory(*case), indent=1) + "\n")
