"""The client for asyncio: the calls of `Client`, with the same answers, against a real service."""

import asyncio
import inspect
import subprocess
import sys

import pytest

from driftbandit import AsyncClient, Client
from driftbandit.client.client import ServiceError, UnreachableError
from driftbandit.service.limits import Limits
from serving import ARMS, NEWS, ask, in_thread

AGE = {"age": 30}


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    with in_thread(tmp_path_factory.mktemp("async") / "a.db", limits=Limits(rate=1e6)) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS})[0] == 201
        yield port


def client(port, loop="news", **options):
    return AsyncClient(f"http://127.0.0.1:{port}", loop, **{"timeout": 30, **options})


def test_it_has_the_calls_of_the_client():
    own = {name for name in vars(Client) if not name.startswith("_")}
    assert own == {name for name in vars(AsyncClient) if not name.startswith("_")}
    for name in own:
        one, other = getattr(Client, name), getattr(AsyncClient, name)
        assert inspect.signature(one).parameters == inspect.signature(other).parameters, name
        assert (one.__doc__, inspect.iscoroutinefunction(other)) == (other.__doc__, True)


def test_every_call_gives_what_the_client_gets(port):
    """The same calls by both, on one loop: ids make repeats harmless."""

    async def play():
        async with client(port) as one:
            found = [await one.decide(AGE, id="d", key="ann", default="a")]
            found.append(await one.decide(AGE, id="s", k=2))
            found += await one.decide_many([{"context": AGE, "id": "m"}, {"context": {"age": "x"}}])
            found.append(await one.reward("d", 1))
            await one.metric("d", "cost", 0.5)
            found.append(await one.cancel("s"))
            await one.add_arm("c", {"topic": "world"})
            await one.pause_arm("c")
            await one.resume_arm("c")
            await one.retire_arm("c")
            found.append((await one.declare(**NEWS))["name"])
            return [*found, await one.send(), (await one.compare())["words"], await one.health()]

    mine = asyncio.run(play())
    with Client(f"http://127.0.0.1:{port}", "news", timeout=30) as one:
        assert mine[0] == one.decide(AGE, id="d", key="ann", default="a")
        assert mine[1] == one.decide(AGE, id="s", k=2)
        assert mine[2] == one.decide_many([{"context": AGE, "id": "m"}])[0]
        assert isinstance(mine[3], ServiceError)
        assert mine[4:8] == ["counted", "cancelled", "news", 0]
        assert mine[8] == one.compare()["words"]
        assert mine[9]["counts"]["decide"] == one.health()["counts"]["decide"] == 3


def test_many_tasks_share_it(port):
    async def play():
        async with client(port) as one:
            return await asyncio.gather(*(one.decide({"age": 20 + k % 60}) for k in range(100)))

    assert len({each.id for each in asyncio.run(play())}) == 100


def test_what_the_service_refuses_is_an_error_and_no_fallback(port):
    async def play(loop, context):
        async with client(port, loop) as one:
            await one.decide(context, default="a")

    with pytest.raises(ServiceError, match="age"):
        asyncio.run(play("news", {"age": "x"}))
    with pytest.raises(ServiceError, match="no loop") as told:
        asyncio.run(play("nothing", AGE))
    assert told.value.status == 404
    with pytest.raises(ValueError, match="url must look like"):
        AsyncClient("127.0.0.1:80", "news")


def test_the_default_while_it_is_away_is_told_once_it_is_back(tmp_path, no_wait_for_the_disk):
    """The service is away, and then at the same port."""
    path = tmp_path / "a.db"
    with in_thread(path) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS})[0] == 201

    async def away(one):
        made = await one.decide(AGE, default="b")
        slate = await one.decide(AGE, k=2, default=["b", "a"])
        assert (made.arm, made.role, made.probability) == ("b", "fallback", 1.0)
        assert [each["arm"] for each in slate.places] == ["b", "a"]
        with pytest.raises(UnreachableError, match="is unreachable"):
            await one.decide(AGE)
        return made

    async def play():
        one = client(port, timeout=0.3)
        made = await away(one)
        with in_thread(path, port=port):
            one_again = client(port)
            await one_again.health()  # it is back
            for _ in range(40):
                try:
                    assert await one.reward(made.id, 1) == "counted"
                    break
                except UnreachableError:
                    pass
            found = (await one_again.health())["counts"]
            await one.close()
            await one_again.close()
        return found

    counts = asyncio.run(play())
    assert (counts["decide"], counts["reward counted"]) == (2, 1)


def test_without_httpx_it_names_the_remedy():
    program = """
import sys
sys.modules["httpx"] = None
import driftbandit
assert driftbandit.Client("http://127.0.0.1:1", "x")
try:
    driftbandit.AsyncClient("http://127.0.0.1:1", "x")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "AsyncClient needs httpx: pip install 'driftbandit[async]'\n", done.stderr
