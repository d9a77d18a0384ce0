"""The MCP server, as a program that the official client starts and talks to."""

import json
import os
import sys

import pytest

pytest.importorskip("mcp")
import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from driftbandit import DOMD, Category, Features, Loop, Number, Reward

FEATURES = Features(context={"age": Number(18, 90)}, arm={"name": Category(["a", "b"])})
ARMS = {"a": {"name": "a"}, "b": {"name": "b"}}


def said(result):
    assert not result.isError, result.content
    return json.loads(result.content[0].text)


@pytest.mark.slow
def test_an_assistant_decides_rewards_and_reads_reports(tmp_path):
    path = str(tmp_path / "shop.db")
    declared = {"features": FEATURES, "reward": Reward(0, 1), "policy": DOMD, "arms": ARMS}
    Loop(path, name="news", **declared).close()

    async def play():
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "driftbandit", "mcp", path], env=dict(os.environ)
        )
        async with (
            stdio_client(program) as (read, write),
            ClientSession(read, write) as session,
        ):
            begun = await session.initialize()
            assert "news" in begun.instructions
            tools = {each.name: each for each in (await session.list_tools()).tools}
            assert set(tools) == {"decide", "reward", "health", "compare"}
            assert all(each.description for each in tools.values())
            assert tools["decide"].inputSchema["required"] == ["loop", "context"]
            asked = {"loop": "news", "context": {"age": 30}, "key": "ann"}
            made = said(await session.call_tool("decide", asked))
            assert made["arm"] in ARMS
            given = {"loop": "news", "id": made["id"], "value": 1}
            told = await session.call_tool("reward", given)
            assert told.content[0].text == "counted"
            health = said(await session.call_tool("health", {"loop": "news"}))
            assert (health["decisions"], health["rewards"]) == (1, 1)
            compared = said(await session.call_tool("compare", {"loop": "news"}))
            assert compared["words"]
            wrong = await session.call_tool("decide", {**asked, "loop": "nothing"})
            assert wrong.isError
            assert "the ledger has news" in wrong.content[0].text
            return made["id"]

    id = anyio.run(play)
    with Loop(path, name="news") as loop:  # it was closed, and all of it was stored
        assert loop.log()["id"].to_list() == [id]
        assert loop.audit(id).agrees
