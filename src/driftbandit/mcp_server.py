"""Loops for assistants, by the Model Context Protocol: tools decide, reward, health and compare.

Needs the extra `mcp`. `driftbandit mcp shop.db` serves the loops of a ledger over standard input
and output, as programs that start MCP servers expect.
"""

from __future__ import annotations

from typing import Any

from driftbandit.loop.config import check_name
from driftbandit.loop.loop import Loop
from driftbandit.loop.storage.ledger import names


class Loops:
    """The loops of a ledger, opened when they are first asked for."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._open: dict[str, Loop] = {}

    def __getitem__(self, name: str) -> Loop:
        if name not in self._open:
            known = names(self.path, write=False)
            if check_name(name) not in known:
                raise ValueError(f"there is no loop {name!r}: the ledger has {', '.join(known)}")
            self._open[name] = Loop(self.path, name=name)
        return self._open[name]

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def server(loops: Loops) -> Any:
    """Return an MCP server over loops, which is not started yet."""
    try:
        from mcp.server.fastmcp import FastMCP
    except ImportError:
        raise ImportError("this needs the MCP SDK: pip install 'driftbandit[mcp]'") from None
    known = ", ".join(names(loops.path, write=False)) or "none"
    made = FastMCP(
        "driftbandit",
        instructions="Decisions by contextual bandits that learn from rewards. Ask decide which "
        "arm to play, play it, and tell reward what came of it, by the decision's id. Loops of "
        f"this ledger: {known}.",
    )

    def decide(
        loop: str,
        context: dict[str, Any],
        arms: dict[str, dict[str, Any]] | None = None,
        key: str | None = None,
        default: str | None = None,
        id: str | None = None,
    ) -> dict[str, Any]:
        """Choose an arm and log the choice. `context` has the columns of the situation, `arms`
        those of the options by name; leave `arms` out if the loop has a catalogue. `key` is whose
        decision it is. Returns the arm, its probability, and the id for the reward."""
        found = loops[loop].decide(context, arms, key=key, default=default, id=id)
        shown = {"id": found.id, "arm": found.arm, "probability": found.probability}
        return shown | {"role": found.role}

    def reward(loop: str, id: str, value: float) -> str:
        """Say what a decision gave. Returns what became of it, such as "counted" or "late"."""
        return loops[loop].reward(id, value)

    def health(loop: str) -> dict[str, Any]:
        """Return how a loop is doing: counts, mean rewards, missing rewards, changes, warnings."""
        return loops[loop].health().to_dict()

    def compare(loop: str) -> dict[str, Any]:
        """Return how candidates compare with the live policy and the default, with intervals."""
        found = loops[loop].compare()
        return {"words": str(found)} | found.to_dict()

    for tool in (decide, reward, health, compare):
        made.add_tool(tool)
    return made
