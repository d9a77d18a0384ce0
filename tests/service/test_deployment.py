"""Running it: backups that restore, and files for systemd and Docker that say what is true."""

import configparser
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.main import get_command

from driftbandit import Client, Loop
from driftbandit.cli import app
from driftbandit.loop.errors import LedgerError
from driftbandit.service.ops.backup import backup
from serving import ARMS, NEWS, in_thread

ROOT = Path(__file__).parents[2]
UNIT, IMAGE = ROOT / "deploy" / "driftbandit.service", ROOT / "deploy" / "Dockerfile"
COMMANDS = get_command(app).commands


def test_a_backup_of_a_service_in_use_can_be_restored(tmp_path):
    """Copies are taken while four threads decide; each is whole, and what was acknowledged before
    a copy began is in it."""
    path, acknowledged, over = tmp_path / "shop.db", [], threading.Event()
    with in_thread(path) as port:
        client = Client(f"http://127.0.0.1:{port}", "news", timeout=30)
        client.declare(**NEWS | {"reward": {"low": 0, "high": 1}})

        def visit():
            while not over.is_set():
                made = client.decide({"age": 30}, ARMS)
                client.reward(made.id, 1)
                acknowledged.append(made.id)

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for thread in threads:
            thread.start()
        known = []
        for k in range(3):
            while len(acknowledged) < 20 * (k + 1):
                over.wait(0.01)
            known.append(set(acknowledged))
            assert backup(path, tmp_path / f"copy{k}.db") > 0
        over.set()
        for thread in threads:
            thread.join()
        client.close()
    for k, before in enumerate(known):
        with Loop(tmp_path / f"copy{k}.db", name="news") as loop:
            log = loop.log()
            assert before <= set(log.filter(log["status"] == "trained")["id"])
            assert all(audit.agrees for audit in loop.audits())
    assert backup(tmp_path / "copy0.db", tmp_path / "again.db") > 0  # the other way restores
    with in_thread(tmp_path / "again.db") as port:
        client = Client(f"http://127.0.0.1:{port}", "news", timeout=30)
        assert client.health()["counts"]["decide"] >= len(known[0])
        client.close()
    base = sqlite3.connect(tmp_path / "again.db")
    assert base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    base.close()


def test_backups_are_refused_in_words(tmp_path):
    with Loop(tmp_path / "shop.db", **_small()):
        pass
    (tmp_path / "other.db").write_text("no database")
    copy = tmp_path / "copy.db"
    for source, target, words in (
        ("postgresql://shop@db/shop", copy, "pg_dump"),
        (tmp_path / "none.db", copy, "is not a file"),
        (tmp_path / "shop.db", tmp_path / "other.db", "exists"),
        (tmp_path / "shop.db", tmp_path / "nowhere" / "copy.db", "cannot be"),
    ):
        with pytest.raises(ValueError, match=words):
            backup(source, target)
    with pytest.raises(LedgerError):
        backup(tmp_path / "other.db", copy)
    assert sorted(each.name for each in tmp_path.glob("*.db")) == ["other.db", "shop.db"]
    command = [sys.executable, "-m", "driftbandit", "backup", "shop.db", "copy.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "bytes, checked" in done.stdout) == (0, True)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "move it away" in done.stderr) == (2, True)
    assert not list(tmp_path.glob(".*"))


def _small():
    from driftbandit import Features, Number, Reward

    return {"features": Features(arm={"x": Number(0, 1)}), "reward": Reward(0, 1)}


def words_of(command):
    """A shell's words; checks that they are a command of ours with options that it has."""
    words = shlex.split(command)
    name, *rest = words[words.index(next(w for w in words if w.endswith("driftbandit"))) + 1 :]
    known = {opt for param in COMMANDS[name].params for opt in param.opts}
    assert {word for word in rest if word.startswith("--")} <= known, command
    return name


def unit():
    parsed = configparser.ConfigParser(strict=True, interpolation=None, comment_prefixes="#")
    parsed.optionxform = str
    parsed.read(UNIT)
    return parsed


def test_the_unit_starts_what_there_is_and_holds_it():
    found = unit()
    service = found["Service"]
    assert words_of(service["ExecStartPre"]) == "warmup"
    assert words_of(service["ExecStart"]) == "serve"
    assert service["User"] not in ("", "root")
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp"):
        assert service[name] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"] in service["ExecStart"]
    assert service["CacheDirectory"] in service["Environment"]
    assert "MemoryDenyWriteExecute" not in service  # kernels are compiled


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd")
def test_systemd_takes_the_unit(tmp_path):
    text = UNIT.read_text().replace("/opt/driftbandit/bin/driftbandit", "/bin/true")
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / UNIT.name],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("hadolint"), reason="no hadolint")
def test_hadolint_takes_the_image():
    done = subprocess.run(["hadolint", IMAGE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def instructions():
    text = re.sub(r"^#.*\n", "", IMAGE.read_text(), flags=re.M).replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]


def test_the_image_is_what_the_page_says():
    found = instructions()
    kinds = [kind for kind, _ in found]
    last = found[len(kinds) - kinds[::-1].index("FROM") - 1 :]  # the stage that runs
    assert kinds.count("FROM") == 2
    assert all(":" in rest.split()[0] and "latest" not in rest for k, rest in found if k == "FROM")
    assert [rest for kind, rest in last if kind == "USER"] == ["10001"]
    assert any("warmup" in rest for kind, rest in found if kind == "RUN")
    assert not any(kind == "ADD" or "sudo" in rest for kind, rest in found)
    environment = [dict(re.findall(r"(\w+)=(\S+)", rest)) for kind, rest in found if kind == "ENV"]
    assert {each.get("NUMBA_CPU_NAME", "generic") for each in environment} == {"generic"}
    assert environment[-1]["NUMBA_CACHE_DIR"].startswith("/tmp/")  # may be written to
    ((_, command),) = [each for each in last if each[0] == "CMD"]
    shell, flag, script = json.loads(command)
    assert (shell, flag) == ("sh", "-c")
    assert words_of(script.partition("&& exec ")[2]) == "serve"
    (check,) = [rest for kind, rest in last if kind == "HEALTHCHECK"]
    assert "/healthz" in json.loads(check[check.index("[") :])[-1]


def test_what_the_image_copies_is_there_and_not_ignored():
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    for kind, rest in instructions():
        if kind == "COPY" and "--from" not in rest:
            for name in rest.split()[:-1]:
                assert (ROOT / name).exists()
                assert f"!{name}" in ignored
