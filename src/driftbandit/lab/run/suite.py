"""Suites: frozen worlds and seeds, played like any study, and a card of scores in one JSON file.

A score is the geometric mean over worlds of a policy's mean regret over that of playing at random,
which is frozen with the suite: 1 learns nothing, 0 knows everything. In a stream no policy reaches
0, because regret is against the best outcome of a round.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from driftbandit.environments import Environment, Stream
from driftbandit.lab.run.execute import Engine, Progress, execute
from driftbandit.lab.run.store import Store, load_results
from driftbandit.lab.study.study_file import Study, parse_study

FORMAT = 1
REFERENCE = "\n[reference]\n"  # what follows in the file is no part of a study
ALL = "all"


@dataclass(frozen=True)
class Suite:
    """A suite as its file says it; the hash is over every character."""

    name: str
    text: str  # a study without policies
    reference: Mapping[str, float]  # regret of `Uniform` by world
    hash: str

    def study(
        self, entries: Iterable[Mapping[str, Any]], plugins: Sequence[str]
    ) -> tuple[Any, str]:
        """The suite played by these policies, as a study and its text."""
        first = f"plugins = {json.dumps(list(plugins))}\n" if plugins else ""
        text = first + self.text + "".join(table_of(entry) for entry in entries)
        return parse_study(text, self.name), text


def parse_suite(text: str) -> Suite:
    """A suite from the text of its file."""
    head, _, tail = text.partition(REFERENCE)
    name = tomllib.loads(head)["name"]
    return Suite(name, head, tomllib.loads(tail), hashlib.sha256(text.encode()).hexdigest()[:16])


def read_suite(name: str) -> Suite:
    """A shipped suite."""
    path = _folder() / f"{name}.toml"
    if name == "leaderboard" or not path.is_file():
        raise ValueError(f"no suite {name!r}: there are {', '.join(suites())}")
    return parse_suite(path.read_text(encoding="utf-8"))


def suites() -> list[str]:
    """Names of the shipped suites."""
    names = (item.name.removesuffix(".toml") for item in _folder().iterdir())
    return sorted(name for name in names if name.startswith("suite-"))


def _folder() -> Any:
    return resources.files("driftbandit.lab") / "suites"


def contenders(names: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of policies, and the plug-ins that define them.

    A name is "all" (the leaderboard), a label or class of the leaderboard, any other policy by its
    class (made by its plain constructor), or a TOML file with [[policies]] as in a study.
    """
    board = tomllib.loads((_folder() / "leaderboard.toml").read_text(encoding="utf-8"))["policies"]
    found: list[dict[str, Any]] = []
    plugins: list[str] = []
    for name in names:
        own = [e for e in board if name in (ALL, e["type"], e.get("label"))]
        if name.endswith(".toml"):
            own = _file_entries(Path(name), plugins)
        found += own or [{"type": name, "tuning": "practical"}]
    return [entry for k, entry in enumerate(found) if entry not in found[:k]], plugins


def _file_entries(path: Path, plugins: list[str]) -> list[dict[str, Any]]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    plugins += data.get("plugins", [])
    unknown = sorted(set(data) - {"plugins", "policies"})
    if unknown or not data.get("policies"):
        raise ValueError(
            f"{path} must hold [[policies]] and nothing else but plugins, for worlds and seeds are "
            f"the suite's; it holds {', '.join(sorted(data)) or 'nothing'}"
        )
    for entry in data["policies"]:
        for key in {"seeds", "tune_on"} & set(entry):
            raise ValueError(f"{path}: a suite plays all its seeds as they come: remove {key!r}")
    return list(data["policies"])


def table_of(entry: Mapping[str, Any]) -> str:
    lines = (f"{key} = {_value(value)}\n" for key, value in entry.items())
    return "\n[[policies]]\n" + "".join(lines)


def _value(value: Any) -> str:
    """A value as TOML, which writes most of them as JSON does."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(_value(v) for v in value)}]"
    return json.dumps(value) if not isinstance(value, float) else repr(value)


def run_suite(
    suite: Suite,
    names: Sequence[str],
    folder: str | os.PathLike[str],
    engine: Engine | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Play what is not stored in the folder yet, and write the card NAME.json there."""
    study, text = suite.study(*contenders(names))
    store = Store(folder)
    execute(study, text, store, engine, progress)
    card = card_of(suite, study, load_results(folder)) | {"made_by": store.runs()[-1]}
    path = store.folder / f"{suite.name}.json"
    path.write_text(_lines(card), encoding="utf-8")
    return card


def _lines(card: dict[str, Any]) -> str:
    """JSON with a line per policy."""
    players = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in card["policies"].items())
    head = json.dumps({key: value for key, value in card.items() if key != "policies"})
    return f'{head[:-1]},\n"policies": {{\n{players}\n}}}}\n'


def card_of(suite: Suite, study: Study, results: pl.DataFrame) -> dict[str, Any]:
    """The card of a suite that was played: everything that comparisons need, in plain types."""
    expected = list(range(study.first_seed, study.first_seed + study.seeds))
    worlds: dict[str, Any] = {}
    policies: dict[str, Any] = {}
    for world_label, world, _ in study.worlds():
        worlds[world_label] = {"reference": suite.reference[world_label]} | _nature(world)
        ends = results.filter(pl.col("round") == world.horizon).sort("seed")
        for label, policy, _ in study.contenders(world):
            here = (pl.col("environment") == world_label) & (pl.col("policy") == label)
            rows = ends.filter(here).unique("seed", maintain_order=True)
            if rows["seed"].to_list() == expected:
                recipe = {k: v for k, v in policy.to_dict().items() if k != "problem"}
                policies.setdefault(label, {})[world_label] = _played(rows, recipe)
    head = {"format": FORMAT, "suite": suite.name, "hash": suite.hash, "seeds": expected}
    return head | {"worlds": worlds, "policies": policies}


def _nature(world: Environment) -> dict[str, Any]:
    """Whether a simulated world drifts; in which order a stream is played."""
    if isinstance(world, Stream):
        return {"order": world.order}
    return {"drifts": world.problem.change_points is None}


def _played(rows: pl.DataFrame, recipe: dict[str, Any]) -> dict[str, Any]:
    regret, cost = rows["regret"], rows["choose_us"] + rows["update_us"]
    return {
        "recipe": recipe,
        "mean": round(float(regret.mean()), 3),  # type: ignore[arg-type]
        "deviation": round(float(regret.std() or 0.0), 3),  # type: ignore[arg-type]
        "us_per_round": round(float(cost.median()), 3),  # type: ignore[arg-type]
        "regret": [round(value, 3) for value in regret.to_list()],
    }
