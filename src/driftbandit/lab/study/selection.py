"""Part of a study: some of its environments, some of its policies, as a smaller study's text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from driftbandit.environments import Environment
from driftbandit.lab.study.labels import nearest
from driftbandit.lab.study.study import PolicyEntry, Study, StudyEntry

Labels = Sequence[str]


def split_names(text: str | None, known: Collection[str]) -> list[str]:
    """Return names from a list with commas; known names that have commas are found whole.

    >>> split_names("drift, S = 1,flip", ["drift, S = 1", "flip"])
    ['drift, S = 1', 'flip']
    """
    names: list[str] = []
    pieces = [piece.strip() for piece in (text or "").split(",") if piece.strip()]
    while pieces:
        joined = (", ".join(pieces[:k]) for k in range(len(pieces), 0, -1))
        names.append(next((name for name in joined if name in known), pieces[0]))
        pieces = pieces[names[-1].count(",") + 1 :]
    return names


def part_of(text: str, study: Study, environments: str | None, policies: str | None) -> str:
    """Return the text of a study with these environments and policies only.

    Each is a list with commas. A name is a label, or a class, which stands for all its variants.
    Of a sweep the picked variants stay, each under its label.
    """
    import tomlkit

    data: Any = tomlkit.parse(text)
    worlds = [list(study.worlds_of(entry)) for entry in study.environments]
    kept = _picked("environment", environments, study.environments, [_labels(w) for w in worlds])
    left = [
        world for some, names in zip(worlds, kept) for label, world, _ in some if label in names
    ]
    rivals = [_variants(study, entry, left) for entry in study.policies]
    chosen = _picked("policy", policies, study.policies, [list(each) for each in rivals])
    options = [{label: swept for label, _, swept in some} for some in worlds]
    data["environments"] = _entries(data["environments"], options, kept)
    data["policies"] = _entries(data["policies"], rivals, chosen)
    return tomlkit.dumps(data)


def _labels(variants: Iterable[tuple[Any, ...]]) -> list[str]:
    return [variant[0] for variant in variants]


def _variants(study: Study, entry: PolicyEntry, worlds: list[Environment]) -> dict[str, Any]:
    """Labels and options of a policy's variants that play in one of these environments."""
    found = (study.contests_of(entry, world) for world in worlds)
    return {label: options for some in found for label, _, options, _ in some}


def _picked(
    kind: str, asked: str | None, entries: Sequence[StudyEntry], labels: Sequence[Labels]
) -> list[list[str]]:
    """Return the labels of every entry that were asked for: all, if nothing was."""
    if asked is None:
        return [list(own) for own in labels]
    known = [label for own in labels for label in own]
    names = split_names(asked, known)
    for name in names:
        if name not in known and name not in {entry.type for entry in entries}:
            raise ValueError(f"the study has no {kind} {name!r}{nearest(name, known)}")
    return [
        [label for label in own if label in names or entry.type in names]
        for entry, own in zip(entries, labels)
    ]


def _entries(tables: Any, options: Sequence[Mapping[str, Any]], kept: Sequence[Labels]) -> Any:
    """Return the tables that stay; a sweep of which a part stays becomes a table per variant."""
    import tomlkit

    found = tomlkit.aot()
    for table, known, names in zip(tables, options, kept):
        for part in _split(table, known, names):
            found.append(part)
    return found


def _split(table: Any, options: Mapping[str, Any], names: Labels) -> Iterator[Any]:
    if names and set(names) == set(options):
        yield table
        return
    for name in names:
        part = table.copy()
        for key, value in options[name].items():
            if key not in table or isinstance(table[key], list):  # the study's horizon, or a sweep
                part[key] = [value] if isinstance(value, list) else value
        part["label"] = name.replace("{", "{{").replace("}", "}}")
        yield part
