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

from driftbandit.environments import Composite, Environment, Stream
from driftbandit.lab.run.cells import json_of
from driftbandit.lab.run.code_version import Versions
from driftbandit.lab.run.execute import Engine, Progress, execute
from driftbandit.lab.run.store import RunStore, load_results
from driftbandit.lab.study.study_file import Study, parse_study
from driftbandit.policies import Policy

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

    def card_head(
        self, worlds: Iterable[tuple[str, Environment, Any]], seeds: list[int]
    ) -> dict[str, Any]:
        """Return what a card says before its policies: the suite, its seeds and environments."""
        facts = {
            label: {"reference": self.reference[label]} | _nature(world)
            for label, world, _ in worlds
        }
        return {
            "format": FORMAT,
            "suite": self.name,
            "hash": self.hash,
            "seeds": seeds,
            "worlds": facts,
        }


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
    lines = (f"{key} = {toml_value(value)}\n" for key, value in entry.items())
    return "\n[[policies]]\n" + "".join(lines)


def toml_value(value: Any) -> str:
    """A value as TOML, which writes most of them as JSON does."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_value(v)}" for key, v in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(toml_value(v) for v in value)}]"
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
    store = RunStore(folder)
    execute(study, text, store, engine, progress)
    card = card_of(suite, study, load_results(folder)) | {"made_by": store.runs()[-1]}
    write_card(card, store.folder / f"{suite.name}.json")
    return card


def write_card(card: dict[str, Any], path: Path) -> None:
    """Write a card as JSON with a line per policy."""
    players = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in card["policies"].items())
    head = json.dumps({key: value for key, value in card.items() if key != "policies"})
    path.write_text(f'{head[:-1]},\n"policies": {{\n{players}\n}}}}\n', encoding="utf-8")


def card_of(suite: Suite, study: Study, results: pl.DataFrame) -> dict[str, Any]:
    """The card of a suite that was played: everything that comparisons need, in plain types."""
    expected = list(range(study.first_seed, study.first_seed + study.seeds))
    worlds, policies, versions = study.worlds(), dict[str, Any](), Versions()
    for world_label, world, _ in worlds:
        ends = results.filter(pl.col("round") == world.horizon).sort("seed")
        for label, policy, _ in study.contenders(world):
            here = (pl.col("environment") == world_label) & (pl.col("policy") == label)
            rows = ends.filter(here).unique("seed", maintain_order=True)
            if rows["seed"].to_list() == expected:
                cost = float((rows["choose_us"] + rows["update_us"]).median())  # type: ignore[arg-type]
                found = played(rows["regret"].to_numpy(), cost, recipe_of(policy))
                found["code"] = versions.of(json_of(world), json_of(policy))
                policies.setdefault(label, {})[world_label] = found
    return suite.card_head(worlds, expected) | {"policies": policies}


def _nature(world: Environment) -> dict[str, Any]:
    """Return what kind of environment it is: its axes, whether it drifts, the order of a stream."""
    if isinstance(world, Stream):
        return {"order": world.order}
    if isinstance(world, Composite):
        return {"axes": list(world.axes)}
    return {"drifts": world.problem.change_points is None}


def recipe_of(policy: Policy) -> dict[str, Any]:
    """Return what a card says of a policy: its recipe, without the problem it was made for."""
    return {key: value for key, value in policy.to_dict().items() if key != "problem"}


def played(regret: Any, cost: float, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a card says of a policy in one environment."""
    return {
        "recipe": recipe,
        "mean": round(float(regret.mean()), 3),
        "deviation": round(float(regret.std(ddof=1)) if len(regret) > 1 else 0.0, 3),
        "us_per_round": round(cost, 3),
        "regret": [round(float(value), 3) for value in regret],
    }
