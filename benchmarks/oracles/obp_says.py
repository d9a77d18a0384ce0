"""Values of obp's estimators, as JSON: run in obp's own environment.

Importing obp needs torch and a dozen other packages of 2022. Its estimators need NumPy, SciPy,
scikit-learn and pandas, so they are loaded alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.oracles.inputs import STRENGTHS, Rows, logs


def estimators() -> Any:
    found = importlib.util.find_spec("obp")
    assert found is not None
    assert found.origin is not None
    home = Path(found.origin).parent
    for name, folder in (("obp", home), ("obp.ope", home / "ope")):
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = [str(folder)]
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.tensor = torch.Tensor = object  # type: ignore[attr-defined]  # only signatures name them
    return importlib.import_module("obp.ope.estimators")


def said(obp: Any, rows: Rows) -> dict[str, float]:
    """By our names."""
    n = np.arange(len(rows.action))
    log = {"reward": rows.reward, "action": rows.action, "action_dist": rows.pi[:, :, None]}
    p, q = (
        {"pscore": rows.h[n, rows.action]},
        {"estimated_rewards_by_reg_model": rows.q[:, :, None]},
    )
    asked = {
        "ips": (obp.InverseProbabilityWeighting(), p),
        "snips": (obp.SelfNormalizedInverseProbabilityWeighting(), p),
        "dm": (obp.DirectMethod(), q),
        "dr": (obp.DoublyRobust(), p | q),
        "ips clipped": (obp.InverseProbabilityWeighting(lambda_=rows.clip), p),
        "dr clipped": (obp.DoublyRobust(lambda_=rows.clip), p | q),
    }
    for strength in STRENGTHS:
        each = obp.DoublyRobustWithShrinkage(lambda_=strength**2), p | q
        asked[f"dr shrunk {strength:g}"] = each
        asked[f"dr switch {strength:g}"] = obp.SwitchDoublyRobust(lambda_=strength), p | q
    return {
        name: float(each.estimate_policy_value(**log, **more))
        for name, (each, more) in asked.items()
    }


if __name__ == "__main__":
    obp = estimators()
    print(json.dumps({name: said(obp, rows) for name, rows in logs().items()}))
