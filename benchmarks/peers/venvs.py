"""An environment of its own for every peer, in .peers/ENVIRONMENT."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.registry import Peer

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".peers"


class Installed(NamedTuple):
    """What became of an installation."""

    python: str  # its interpreter's version
    version: str  # of the peer; empty if it is not there
    reason: str  # pip's, if it is not there


def python_of(peer: Peer) -> Path:
    """The interpreter that plays this peer."""
    return FOLDER / peer.name / "bin" / "python" if peer.requirements else Path(sys.executable)


def base(peer: Peer) -> str | None:
    """An interpreter that the peer's release supports: this one, or the newest on the path."""
    if sys.version_info.minor in peer.minors:
        return sys.executable
    found = (shutil.which(f"python3.{minor}") for minor in reversed(peer.minors))
    return next((path for path in found if path), None)


def install(peer: Peer) -> Installed:
    """Make the peer's environment, unless it is there with the same requirements."""
    if not peer.requirements:
        return Installed(sys.version.split()[0], version(peer, "driftbandit"), "")
    stamp = FOLDER / peer.name / "requirements.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != list(peer.requirements):
        reason = make(peer)
        if reason:
            return Installed(sys.version.split()[0], "", reason)
        stamp.write_text(json.dumps(peer.requirements))
    code = "import sys; print(sys.version.split()[0])"
    return Installed(output(peer, "-c", code), version(peer, peer.name), "")


def make(peer: Peer) -> str:
    """Install; returns why it failed, or nothing."""
    interpreter = base(peer)
    if interpreter is None:
        return f"needs Python 3.{peer.minors[0]} to 3.{peer.minors[-1]}, none found"
    subprocess.run([interpreter, "-m", "venv", "--clear", FOLDER / peer.name], check=True)
    command = [python_of(peer), "-m", "pip", "install", "--quiet", *peer.requirements]
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return "" if done.returncode == 0 else (errors or ["pip failed"])[0].replace("|", "/")


def output(peer: Peer, *arguments: str) -> str:
    command = [python_of(peer), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def version(peer: Peer, package: str) -> str:
    return output(peer, "-c", f"from importlib.metadata import version as v; print(v({package!r}))")
