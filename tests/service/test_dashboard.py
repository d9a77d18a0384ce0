"""The dashboard in a real browser, the live view behind it, and the demo."""

import base64
import hashlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import quote

import numpy as np
import pytest

from browsing import browser, needs_chromium
from driftbandit import Client
from driftbandit.loop.training.trainer import Lag
from driftbandit.service.dashboard import live
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.limits import Limits
from driftbandit.service.ops import demo
from serving import ask, in_thread

__all__ = ["browser"]  # a fixture

EVIL = '<img src=x onerror="alert(1)">'
SHOP = {
    "features": {
        "context": {"age": {"type": "Number", "low": 18, "high": 90}},
        "arm": {"topic": {"type": "Category", "values": ["sport", EVIL]}},
    },
    "reward": {"low": 0, "high": 1},
    "policy": "DOMD",
    "exploration": 0.2,
}
ARMS = {"a": {"topic": "sport"}, EVIL: {"topic": EVIL}}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


@pytest.fixture(scope="module", autouse=True)
def _quick(no_wait_for_the_disk):
    """No wait for the disk, and views as soon as something has happened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "PAUSE", 0.05)
        patch.setattr(live, "TICK", 0.05)
        yield


def visits(port, n, first=0, loop="shop", **options):
    with Client(f"http://127.0.0.1:{port}", loop, timeout=30, **options) as client:
        for k in range(first, first + n):
            made = client.decide({"age": 18 + k % 70}, ARMS, id=f"v{k}", default="a")
            client.reward(made.id, float(k % 3 == 0 or made.arm == EVIL))


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    path = tmp_path_factory.mktemp("dashboard") / "shop.db"
    with in_thread(path) as port:
        assert ask(port, "PUT", "/v1/loops/shop", SHOP)[0] == 201
        visits(port, 200)
        yield port


def until(browser, script, *args, seconds=20):
    end = time.monotonic() + seconds
    while not (found := browser.execute_script(f"return {script}", *args)):
        assert time.monotonic() < end, script
        time.sleep(0.02)
    return found


def emulate(browser, theme="light", screen=None):
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    if screen:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def opened(browser, port, decisions):
    """The page, once it has seen so many decisions, all of them trained."""
    browser.get(f"http://127.0.0.1:{port}/")
    until(
        browser, f"document.querySelector('[data-tile=decisions] dd')?.dataset.value >= {decisions}"
    )


def tiles(browser):
    return browser.execute_script(
        "return Object.fromEntries([...document.querySelectorAll('[data-tile]')].map(each => "
        "[each.dataset.tile, Number(each.querySelector('dd').dataset.value)]))"
    )


def memory(port):
    return ask(port, "GET", "/v1/loops/shop/health")[1]["report"]["memory"]


@needs_chromium
def test_it_opens_and_its_numbers_are_those_of_the_service(browser, port):
    emulate(browser)
    browser.get_log("browser")
    opened(browser, port, 200)
    visits(port, 20, first=1000)
    total = ask(port, "GET", "/v1/loops/shop/health")[1]["report"]["decisions"]
    until(browser, f"document.querySelector('[data-tile=decisions] dd').dataset.value == {total}")
    until(browser, "latest.health.report.rewards == latest.health.report.decisions")
    report, end = ask(port, "GET", "/v1/loops/shop/health")[1]["report"], time.monotonic() + 10
    expected = {name: report[name] for name in ("decisions", "rewards", "missing")}
    expected["exploration"] = report["exploration_share"]
    expected |= {f"value-{name}": found["mean"] for name, found in report["values"].items()}
    while (shown := tiles(browser)) != pytest.approx(
        expected | {"behind": 0.0, "memory": memory(port)}
    ):
        assert time.monotonic() < end, (shown, expected)
    assert browser.execute_script("return document.querySelectorAll('#reward .line').length") == 2
    dots = browser.execute_script(
        "return document.querySelectorAll('#reward .series-0 .dot').length"
    )
    assert dots == sum(window["values"]["loop"] is not None for window in report["curve"])
    assert browser.title == "shop · driftbandit"
    assert browser.get_log("browser") == []


@needs_chromium
def test_the_status_is_a_sentence_and_each_arm_has_a_band(browser, port):
    opened(browser, port, 200)
    status = "document.getElementById('uplift').textContent"
    assert "over the default (95 %: +" in until(browser, status)
    bands, names = browser.execute_script(
        "return [document.querySelectorAll('#played .band').length, "
        "document.getElementById('arms').textContent]"
    )
    assert bands == len(ARMS)
    assert all(arm in names for arm in ARMS)
    said = "const view = structuredClone(latest); Object.assign(view.health.report, arguments[0]);"
    said += "view.detected = [view.health.report.curve[0].end]; view.happened = view.detected;"
    said += f"show(view); return [{status}, document.getElementById('world').textContent, "
    said += "document.querySelectorAll('#reward .mark').length, "
    said += "document.querySelectorAll('#played .mark.happened').length]"
    wide = {"mean": 0.05, "low": -0.1, "high": 0.2, "relative": True, "better": None}
    worse = {"mean": -3.0, "low": -4.0, "high": -2.0, "relative": False, "better": False}
    cases = {
        "Cannot say yet whether the loop beats the default: +5 % reward (95 %: −10 %": wide,
        "−3 reward over the default (95 %: −4 to −2): the default does better": worse,
        "Cannot say how the loop compares: pass default= with each decision": None,
    }
    for words, uplift in cases.items():
        shown = browser.execute_script(said, {"uplift": uplift, "state": "just changed"})
        assert shown[0].startswith(words)
        assert "has just detected a change" in shown[1]
        assert shown[2:] == [2, 1]


@needs_chromium
def test_latest_decisions_say_why_an_arm_behind_was_played(browser, port):
    opened(browser, port, 200)
    row = {"at": 5.0, "position": None, "arm": "a", "runner_up": "b", "terms": {"age": 1.0}}
    bonus = "age +1, exploration bonus +0.9"
    cases = [
        ("active", 0.9, 1.5, None, "+1.5 over b: age +1"),
        ("active", 0.05, -1.5, 0.9, f"explored: −1.5 against b: {bonus}"),
        ("active", 0.05, 0.1, -0.9, "explored: +0.1 over b: age +1, exploration bonus −0.9"),
        ("active", 0.9, -0.5, 0.9, f"its exploration bonus outweighs: −0.5 against b: {bonus}"),
        ("active", 0.9, -0.5, None, "its exploration bonus outweighs: −0.5 against b: age +1"),
        ("holdout", 1.0, -0.5, None, "the default (holdout): −0.5 against b: age +1"),
    ]
    rows = [
        row | {"id": str(k), "role": role, "probability": p, "lead": lead, "bonus": bonus}
        for k, (role, p, lead, bonus, _) in enumerate(cases)
    ]
    words, marked, missing = browser.execute_script(  # at once: the next view comes by itself
        "show({...structuredClone(latest), latest: arguments[0]});"
        "const rows = [...document.querySelectorAll('#latest tbody tr')];"
        "return [rows.map(each => each.lastChild.textContent),"
        "rows.map(each => each.className), "
        "unrewarded({missing_reward: 0}) + unrewarded({missing_reward: null})]",
        rows,
    )
    assert words == [case[-1] for case in cases]
    assert marked == ["", "explored", "explored", "", "", ""]
    assert missing == "counted as 0not learnt from"


class Told:
    """A loop whose health is what it is told."""

    settings = type("Settings", (), {"mode": "active"})
    policy, lag = None, Lag(0, 0.0)

    def __init__(self):
        self.counts, self.asked, self.promoted = {"decide": 0}, [], -1.0

    def health(self, since):
        self.asked.append(since)
        if since is not None and since < self.promoted:
            raise ValueError("the live policy was promoted after that date")
        now = time.time()
        curve = [{"start": now - k, "end": now - k + 1.0} for k in (9, 6, 3, 0)]
        shares = {"exploration_share": 0.1, "missing": 0.0}
        report = {"state": self.state, "memory": self.memory, "curve": curve} | shares
        return type("Found", (), {"to_dict": lambda _: report})()

    def shown(self, view, state, memory):
        self.counts = {"decide": self.counts["decide"] + 1}
        self.state, self.memory = state, memory
        view.refresh(self)
        return view.view


def test_a_detected_change_is_marked_once_and_what_changed_starts_before_it(monkeypatch):
    loop, view = Told(), live.LoopView("shop")
    for memory in (100, 200, 300, 250, 200):  # the world changes at 300
        last = loop.shown(view, "stationary", memory)
    assert last.detected == []
    before = last.history[2].at
    for state in ("just changed", "stationary", "just changed"):  # one change, not two
        last = loop.shown(view, state, 50)
    assert len(last.detected) == 1
    assert last.detected == [last.history[5].at]
    assert last.since == before == loop.asked[-1]
    monkeypatch.setattr(live, "CALM", 0.0)  # long enough since
    loop.shown(view, "stationary", 400)
    assert len(loop.shown(view, "just changed", 40).detected) == 2
    assert loop.shown(view, "stationary", 40).since > before


def test_a_promotion_after_the_change_does_not_end_the_view():
    loop, view = Told(), live.LoopView("shop")
    for state in ("stationary", "just changed", "just changed"):
        assert loop.shown(view, state, 100)
    loop.promoted = time.time()
    assert loop.shown(view, "stationary", 100).since is None


@needs_chromium
def test_the_report_can_be_kept(browser, port):
    opened(browser, port, 200)
    browser.execute_script(
        "URL.createObjectURL = blob => { blob.text().then(text => { window.keptText = text; });"
        "return '#'; }; HTMLAnchorElement.prototype.click = function() {};"
        "document.getElementById('report').click()"
    )
    assert "<title>Evaluation of live, default, uniform</title>" in until(
        browser, "window.keptText"
    )


@needs_chromium
def test_the_acting_policy_and_the_candidates(browser, port):
    assert ask(port, "PUT", "/v1/loops/who", SHOP)[0] == 201
    visits(port, 5, loop="who")
    shown = "document.getElementById('who').textContent"
    browser.get(f"http://127.0.0.1:{port}/#who")
    browser.refresh()
    until(browser, f"{shown} == 'Acting policy: live.'")
    path, bold = "/v1/loops/who/candidates/", {"exploration": {"type": "Floor", "uniform": 0.5}}
    for name in ("bold", EVIL):
        assert ask(port, "PUT", path + quote(name), bold)[0] == 201
    assert ask(port, "PATCH", path + "bold", {"share": 0.25})[0] == 200
    both = f"bold (25.0 %), {EVIL} (shadow)"
    until(browser, f"{shown} == arguments[0]", f"Acting policy: live. Candidates: {both}.")
    asked = {"candidate": EVIL, "force": True}
    assert ask(port, "POST", "/v1/loops/who/promotion", asked)[1]["acts"] == EVIL
    until(browser, f"{shown} == arguments[0]", f"Acting policy: {EVIL}. Candidates: bold (25.0 %).")
    assert browser.execute_script("return document.images.length") == 0


@needs_chromium
def test_hostile_names_are_text(browser, port):
    opened(browser, port, 200)
    visits(port, 20, first=2000)
    until(browser, "document.querySelectorAll('#latest tbody tr').length >= 4")
    rows = browser.execute_script("return document.getElementById('latest').innerText")
    assert EVIL in rows
    assert browser.execute_script("return document.images.length") == 0
    names = browser.execute_script(
        "return Object.values(latest.latest).map(each => [each.id, each.lead, each.probability])"
    )
    for id, lead, probability in names:
        why = ask(port, "GET", f"/v1/loops/shop/decisions/{id}/why")[1]
        assert lead == pytest.approx(why["lead"])
        assert any(probability == pytest.approx(p) for p in why["logged"])
    assert ask(port, "PUT", f"/v1/loops/{EVIL}", SHOP)[0] == 422
    changed, images = browser.execute_script(  # at once: the next view comes by itself
        "const view = structuredClone(latest); view.health.name = arguments[0];"
        "view.health.report.concerns = [arguments[0]]; view.since = 5;"
        "view.health.report.changed = [{term: arguments[0], before: 1, after: -1, deviation: 0.5}];"
        "show(view); return [document.getElementById('moved').innerText, document.images.length]",
        EVIL,
    )
    assert changed.startswith(f"{EVIL} now does worse: −2 log-odds since ")
    assert images == 0


@needs_chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_phone_and_the_night(browser, port, theme):
    emulate(browser, theme, PHONE)
    opened(browser, port, 200)
    visits(port, 8, first=3000 + 100 * (theme == "dark"))
    until(browser, "document.querySelectorAll('#latest tbody tr').length >= 4")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    shade = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (int(re.search(r"\d+", shade)[0]) > 127) == (theme == "light")
    browser.execute_script("document.getElementById('theme').click()")
    other = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert other != shade


@needs_chromium
def test_a_key_is_asked_for_kept_in_the_tab_and_forgotten(browser, tmp_path):
    emulate(browser)
    keys = ApiKeys(tmp_path / "shop.db")
    reader, web = keys.create("me", ["read"]), keys.create("web", ["decide"])
    boss = keys.create("boss", ["admin"])
    with in_thread(tmp_path / "shop.db", open_access=False) as port:
        assert ask(port, "PUT", "/v1/loops/shop", SHOP, key=boss)[0] == 201
        visits(port, 5, api_key=boss)
        browser.get(f"http://127.0.0.1:{port}/")
        enter = (
            "document.getElementById('key').value = arguments[0];"
            "document.getElementById('login').requestSubmit()"
        )
        assert browser.execute_script("return document.getElementById('view').hidden")
        for wrong, words in (("me.wrong", "was revoked"), (web, "it may not read")):
            browser.execute_script(enter, wrong)
            until(
                browser, "document.getElementById('wrong').innerText.includes(arguments[0])", words
            )
            assert browser.execute_script("return sessionStorage.length") == 0
        browser.execute_script(enter, reader)
        until(browser, "!document.getElementById('view').hidden")
        browser.refresh()
        until(browser, "!document.getElementById('view').hidden")
        browser.execute_script("document.getElementById('forget').click()")
        assert browser.execute_script("return sessionStorage.length") == 0
        assert browser.execute_script("return document.getElementById('view').hidden")
    keys.close()


@needs_chromium
def test_without_a_loop_there_is_a_first_command_that_works(browser, tmp_path):
    emulate(browser)
    with in_thread(tmp_path / "shop.db") as port:
        browser.get(f"http://127.0.0.1:{port}/")
        until(browser, "!document.getElementById('empty').hidden")
        command = shlex.split(until(browser, "document.getElementById('first').textContent"))
        assert command[:3] == ["curl", "-X", "PUT"]
        declared = json.loads(command[-1])
        assert ask(port, "PUT", command[3].partition(f":{port}")[2], declared)[0] == 201
        until(browser, "!document.getElementById('view').hidden")
        assert browser.execute_script("return document.getElementById('empty').hidden")
    until(browser, "document.getElementById('view').classList.contains('stale')")


def test_the_page_has_no_data_and_a_strict_policy(port):
    status, text, headers = ask(port, "GET", "/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert b"shop" not in text.replace(b"shop.db", b"")
    policy = dict(part.split(maxsplit=1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    for tag, source in (("script", "script-src"), ("style", "style-src")):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), text, flags=re.S)
        digest = base64.b64encode(hashlib.sha256(inner).digest()).decode()
        assert policy[source] == f"'sha256-{digest}'"
    assert not re.search(rb"""\s(src|style|on\w+)=|https?://(?!www\.w3\.org/2000/svg)""", text)


@contextmanager
def streamed(port, key=""):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request("GET", "/v1/loops/shop/live", headers={"authorization": f"Bearer {key}"})
    with closing(link), link.getresponse() as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer


def event(answer):
    line = answer.readline()
    assert answer.readline() == b"\n"
    return json.loads(line.removeprefix(b"data: "))


def decisions(view):
    return view["health"]["report"]["decisions"]


def test_a_stream_tells_what_is_new_and_ends(port, monkeypatch):
    monkeypatch.setattr(live, "LIFE", 2.0)
    with streamed(port) as stream:
        first = event(stream)
        visits(port, 3, first=4000)
        second = event(stream)
        while decisions(second) < decisions(first) + 3:
            second = event(stream)
        while stream.readline():  # until its life is over
            pass
    times = [each["at"] for each in second["history"]]
    assert times == sorted(times)
    found = ask(port, "GET", "/v1/loops/shop/overview")[1]
    assert found["latest"][0]["id"] == "v4002"
    assert found["health"]["report"]["curve"][-1]["rows"] > 0
    assert ask(port, "GET", "/v1/loops/unknown/live")[0] == 404
    assert ask(port, "GET", "/v1/loops/unknown/overview")[0] == 404


def test_a_revoked_key_ends_the_view(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "LIFE", 0.3)
    keys = ApiKeys(tmp_path / "shop.db")
    boss, reader = keys.create("boss", ["admin"]), keys.create("me", ["read"])
    with in_thread(tmp_path / "shop.db", open_access=False) as port:
        assert ask(port, "PUT", "/v1/loops/shop", SHOP, key=boss)[0] == 201
        assert ask(port, "GET", "/v1/loops/shop/overview")[0] == 401
        with streamed(port, reader) as stream:
            event(stream)
            keys.revoke("me")
            stream.read()  # ends
        end = time.monotonic() + 20
        while ask(port, "GET", "/v1/loops/shop/live", key=reader)[0] != 401:
            assert time.monotonic() < end
    keys.close()


def test_slates_are_shown_by_position(port):
    ask(port, "GET", "/v1/loops/shop/overview")
    with Client(f"http://127.0.0.1:{port}", "shop", timeout=30) as client:
        made = client.decide({"age": 30}, ARMS, k=2, id="slate")
    own = []
    while not own:
        shown = ask(port, "GET", "/v1/loops/shop/overview")[1]["latest"]
        own = [each for each in shown if each["id"] == "slate"]
    assert [each["position"] for each in own] == [0, 1]
    assert [each["arm"] for each in own] == [place["arm"] for place in made.places]


def test_streams_are_limited_and_do_not_hold_the_stop(tmp_path):
    with ExitStack() as streams:
        with in_thread(tmp_path / "shop.db", limits=Limits(streams=2)) as port:
            assert ask(port, "PUT", "/v1/loops/shop", SHOP)[0] == 201
            both = [streams.enter_context(streamed(port)) for _ in range(2)]
            for each in both:
                event(each)
            assert ask(port, "GET", "/v1/loops/shop/live")[0] == 503
            begun = time.monotonic()
        assert time.monotonic() - begun < 3.0
        for each in both:
            each.read()  # ends


def test_demo_runs_and_ends(tmp_path):
    command = [sys.executable, "-m", "driftbandit", "demo", "--port", "0"]
    env = os.environ | {"TMPDIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    served = subprocess.Popen(command, env=env, text=True, **pipes)
    url = re.search(r"http://[\d.:]+", served.stdout.readline())[0]
    overview, end = f"{url}/v1/loops/{demo.LOOP}/overview", time.monotonic() + 60
    found = {"health": {"report": {"rewards": 0}}}
    while found["health"]["report"]["rewards"] < 2:
        assert time.monotonic() < end
        try:
            found = json.loads(urllib.request.urlopen(overview).read())
        except urllib.error.HTTPError:
            time.sleep(0.05)
    served.send_signal(signal.SIGINT)
    _, lines = served.communicate(timeout=20)
    assert served.returncode == 0
    assert all(line.startswith("compiling, which") for line in lines.splitlines())
    assert not any(tmp_path.glob("*/demo.db*"))


def test_a_port_that_is_taken_is_one_line_that_names_the_option(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words in (["demo"], ["serve", "shop.db", "--open"]):
            command = [sys.executable, "-m", "driftbandit", *words, "--port", port]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 2
            assert re.fullmatch(rf"driftbandit: port {port} of .*--port 0.*\n", done.stderr)
    assert not list(tmp_path.iterdir())


def test_the_demo_says_what_happens():
    lines = []
    narrator = demo.Narrator(lines.append)
    narrator.opened()
    assert "00:00  the shop is open" in lines.pop()
    report = {"state": "stationary", "values": {}}
    for second in range(int(demo.TURN) + 60):
        changed = second >= demo.TURN
        adapted = second >= demo.TURN + 20
        for visit in range(25):
            now = second + visit / 25
            narrator.visited(now, 0.1 if changed and not adapted else 0.6)
        noticed = demo.TURN + 5 <= second < demo.TURN + 30
        narrator.looked(second, report | {"state": "just changed" if noticed else "stationary"})
    means = {"loop": (0.42, 0.4, 0.44), "default": (0.25, 0.2, 0.3)}
    values = {k: dict(zip(("mean", "low", "high"), v)) for k, v in means.items()}
    more = {"mean": 0.684, "low": 0.4, "high": 1.1, "relative": True, "better": True}
    narrator.concluded(second, {"values": values, "uplift": more})
    narrator.concluded(second, {"values": {}, "uplift": None})  # nothing is known yet
    assert [line[:5] for line in lines[:2]] == ["01:15", "01:20"]
    assert "tastes change: books on phones, outdoor elsewhere" in lines[0]
    assert "the loop has noticed, 5 s after the change" in lines[1]
    assert "recovered" in lines[2]
    assert "+68 % clicks over the default (95 %: +40 % to +110 %): 0.42 per visitor" in lines[3]
    assert len(lines) == 4


def test_the_demo_ends_by_itself(tmp_path):
    command = [sys.executable, "-m", "driftbandit", "demo", "--port", "0", "--minutes", "0.05"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "the demo runs: open http://127.0.0.1:" in done.stdout


class Bought:
    """A client that always plays one offer."""

    def __init__(self, arm):
        self.arm, self.made, self.clicks = arm, 0, 0

    def decide(self, visitor, offers, default):
        self.made += 1
        return type("Served", (), {"id": str(self.made), "arm": self.arm})

    def reward(self, id, value):
        self.clicks += value


def test_the_demos_world_turns_over():
    kinds = {arm: offer["kind"] for arm, offer in demo.OFFERS.items()}
    for phone in (True, False):
        best = []
        for turn in range(3):
            chances = {arm: demo.chance(phone, kinds[arm], turn * demo.TURN) for arm in kinds}
            best.append(max(chances, key=chances.get))
            assert sorted(chances.values())[-2] == chances[demo.DEFAULT]  # safe, and never best
        assert len(set(best)) == 3


def test_the_demos_visitors_click_as_often_as_they_should():
    client = Bought("novel")
    shop = demo.Shop(client, seed=1)
    for k in range(3000):
        shop.visit(k * demo.TURN / 3000)
    expected = np.mean([demo.chance(phone, "books", 0.0) for phone in (True, False)])
    assert client.clicks / client.made == pytest.approx(expected, abs=0.03)


def test_watching_does_not_hold_decisions(port):
    """Many dashboards, one client: each view is made once for all of them."""
    done = threading.Event()

    def watch():
        while not done.is_set():
            ask(port, "GET", "/v1/loops/shop/overview")

    threads = [threading.Thread(target=watch) for _ in range(4)]
    for thread in threads:
        thread.start()
    visits(port, 20, first=5000)
    done.set()
    for thread in threads:
        thread.join()
    assert ask(port, "GET", "/v1/loops/shop/decisions/v5019/why")[0] == 200
