"""Cards of the frozen suites in docs/results, and the leaderboards that are made of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import tables


def stored(suite: str) -> dict:
    """The card of a suite."""
    from driftbandit.lab.report import scorecards

    tables.quote(suite)
    return scorecards.read_card(tables.RESULTS / f"{suite}.json")


def collect(path: Path) -> None:
    """Store a card; policies that it does not have stay as they are stored."""
    from driftbandit.lab.report import scorecards
    from driftbandit.lab.run.suite import write_card

    card, there = scorecards.read_card(path), tables.RESULTS / path.name
    if there.exists():
        old = scorecards.read_card(there)
        if old["hash"] == card["hash"]:
            card["policies"] = old["policies"] | card["policies"]
    write_card(card, there)


def leaderboard(suite: str) -> str:
    """Scores of every policy on a suite, with what each must know beforehand."""
    from driftbandit.lab.report import scorecards
    from driftbandit.policies.catalogue import CATALOGUE

    card = stored(suite)
    needs = {entry.policy.__name__: entry.needs for entry in CATALOGUE}
    head, *rows = scorecards.score_rows(card)
    table = [["", *head, "must know beforehand"]]
    for place, (name, *shown) in enumerate(rows, start=1):
        kind = next(iter(card["policies"][name].values()))["recipe"]["type"]
        table.append(
            [str(place) if shown[0] != scorecards.MISSING else "", name, *shown, needs[kind]]
        )
    return tables.markdown(table)


def suite_worlds(suite: str) -> str:
    """The worlds of a suite, numbered, and every policy's share of the reference in them."""
    from driftbandit.lab.report import scorecards

    card = stored(suite)
    numbered = [
        f"{k}. {world}, playing at random: {facts['reference']:.0f}"
        for k, (world, facts) in enumerate(card["worlds"].items(), start=1)
    ]
    rows = [list(row) for row in scorecards.world_rows(card)]
    return "\n".join([*numbered, "", tables.markdown(rows)])
