"""Vowpal Wabbit's dsjson: a line for each decision, with cost, probabilities and features.

    {"_label_cost": -1, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1,
     "Timestamp": "2024-05-01T12:00:00Z", "EventId": "17", "a": [2, 1], "p": [0.8, 0.2],
     "c": {"age": 31, "_multi": [{"_tag": "a", "price": 9}, {"_tag": "b", "price": 5}]}}

Actions count from 1, `a` orders them as `p` does, and the reward is minus the cost. Namespaces
become names with a dot, "User.age". As in Vowpal Wabbit, names that begin with "_" are no features.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from driftbandit.evidence.reading.chunk import BAD, SKIP, Chunk
from driftbandit.loop.storage.events import plain

TAG = "_tag"
MARKS = ("_label_cost", "_label_probability", "_labelIndex", "_label_Action")


def is_dsjson(line: Mapping[str, Any]) -> bool:
    return isinstance(line.get("c"), Mapping) or any(mark in line for mark in MARKS)


def row(line: Mapping[str, Any]) -> dict[str, Any]:
    """A decision as our columns, or the reason why it is none."""
    if BAD in line:
        return dict(line)
    if line.get("_skipLearn"):
        return {SKIP: "_skipLearn"}
    c = line.get("c")
    if not isinstance(c, Mapping):
        return {SKIP: "an outcome without its decision"}
    if "_outcomes" in line or "_slots" in c:
        return {BAD: "a decision over several slots"}
    if line.get("pdrop"):
        return {BAD: "rows around it were dropped (pdrop), so rewards are no fair sample"}
    multi = c.get("_multi")
    if not isinstance(multi, list) or not multi or not all(isinstance(m, Mapping) for m in multi):
        return {BAD: "no arms in c._multi"}
    try:
        return _decision(line, c, multi)
    except RecursionError:
        return {BAD: "namespaces that are nested too deeply"}


def _decision(line: Mapping[str, Any], c: Mapping[str, Any], multi: list[Any]) -> dict[str, Any]:
    names = [str(arm.get(TAG, k)) for k, arm in enumerate(multi, start=1)]
    chosen = line.get("_labelIndex")
    if chosen is None and isinstance(line.get("_label_Action"), int):
        chosen = line["_label_Action"] - 1
    if not isinstance(chosen, int) or not 0 <= chosen < len(multi):
        return {BAD: "an action that is not among the arms"}
    cost = line.get("_label_cost")
    return {
        "context": features(c),
        "arms": [features(arm) for arm in multi],
        "names": names,
        "action": names[chosen],
        "probability": line.get("_label_probability"),
        "probabilities": _in_order(line.get("a"), line.get("p"), len(multi)),
        "reward": -cost if isinstance(cost, (int, float)) else None,
        "time": line.get("Timestamp"),
        "id": line.get("EventId"),
    }


def _in_order(a: Any, p: Any, size: int) -> list[Any] | None:
    """Probabilities in the order of the arms; None where they are not all given, and an empty
    list, which makes a bad row, where it cannot be said whose they are."""
    if not isinstance(a, list) or not isinstance(p, list) or not len(a) == len(p) == size:
        return None
    order = {each: k for k, each in enumerate(a) if isinstance(each, int)}
    return [p[order[k]] for k in range(1, size + 1)] if {*order} == {*range(1, size + 1)} else []


def features(part: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Features of all namespaces, by names with dots."""
    out: dict[str, Any] = {}
    for name, value in part.items():
        if name.startswith("_"):
            continue
        if isinstance(value, Mapping):
            out |= features(value, f"{prefix}{name}.")
        elif isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
            for each in value:
                out |= features(each, f"{prefix}{name}.") if isinstance(each, Mapping) else {}
        else:
            out[prefix + name] = value
    return out


def lines(chunk: Chunk) -> Iterator[str]:
    """A line for each row."""
    end = chunk.start + chunk.sizes
    for k, menu in enumerate(chunk.menus):
        chosen, p = int(chunk.action[k]), float(chunk.p[k])
        multi = [{TAG: name} | _checked(arm) for name, arm in zip(menu.names, menu.columns)]
        line: dict[str, Any] = {
            "_label_cost": 0.0 - float(chunk.reward[k]),
            "_label_probability": p,
            "_label_Action": chosen + 1,
            "_labelIndex": chosen,
        }
        if not np.isnan(chunk.at[k]):
            line["Timestamp"] = _stamp(float(chunk.at[k]))
        line |= {"Version": "1", "EventId": chunk.id[k]} if chunk.id[k] is not None else {}
        if chunk.aside[k]:  # the live policy did not draw it: its probability must not count
            line["_skipLearn"] = True
        h = chunk.h[chunk.start[k] : end[k]].tolist()
        if not np.isnan(h).any():  # played first, as Vowpal Wabbit writes them
            order = [chosen, *(j for j in range(len(h)) if j != chosen)]
            line |= {"a": [j + 1 for j in order], "p": [h[j] for j in order]}
        line["c"] = _checked(chunk.context[k]) | {"_multi": multi}
        yield json.dumps(plain(line), allow_nan=False)


def _checked(part: Mapping[str, Any]) -> dict[str, Any]:
    for name in part:
        if name.startswith("_"):
            raise ValueError(f"dsjson does not take {name!r} as a feature: rename the column")
    return dict(part)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")
