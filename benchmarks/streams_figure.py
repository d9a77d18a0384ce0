"""Mean reward on the real streams, with intervals: the tables of docs/streams.md."""

from __future__ import annotations

import json

from benchmarks import tables

HERO = "driftbandit AutoDOMD"


def columns(lines: list[dict[str, str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((line["stream"], line["order"]) for line in lines))


def table() -> str:
    """Mean rewards in per cent; in bold what is certainly above AutoDOMD."""
    from benchmarks.tables import markdown

    lines = tables.stored("real-streams")
    found = {(x["contender"], x["stream"], x["order"]): x for x in lines}
    places = columns(lines)
    rows = [["learner", *(f"{stream}, {order}" for stream, order in places)]]
    for name in dict.fromkeys(line["contender"] for line in lines):
        rows.append([name, *(_cell(found[(name, *place)]) for place in places)])
    return markdown(rows)


def _cell(line: dict[str, str]) -> str:
    better = float(line["difference"]) > float(line["difference_half"])
    text = f"{float(line['mean']):.1f} ± {float(line['half']):.1f}"
    return f"**{text}**" if better and line["contender"] != HERO else text


def settings() -> str:
    """The setting that won on the window before, of everybody who chose."""
    from benchmarks.tables import markdown

    lines = tables.stored("real-streams")
    places = columns(lines)
    rows = [["learner", *(f"{stream}, {order}" for stream, order in places)]]
    won = {(x["contender"], x["stream"], x["order"]): json.loads(x["setting"]) for x in lines}
    for name in dict.fromkeys(line["contender"] for line in lines):
        mine = [won[(name, *place)] for place in places]
        if any(mine):
            texts = [", ".join(f"{k} {v}" for k, v in one.items()) for one in mine]
            rows.append([name, *(text.removeprefix("options ") or "defaults" for text in texts)])
    return markdown(rows)
