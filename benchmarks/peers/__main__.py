"""`make bench-peers`: install, play what is missing, time, and write docs/results/peers*."""

from __future__ import annotations

from rich.console import Console
from rich.progress import Progress

import driftbandit
from benchmarks.peers import contest, report, timing, venvs
from benchmarks.peers.registry import CONTENDERS, NAIVE, OURS, PEERS, Contender
from benchmarks.peers.worlds import worlds

console = Console(width=130)


def install() -> dict[str, venvs.Installed]:
    """All peers; one that does not install is reported and left out."""
    found = {}
    for peer in (OURS, NAIVE, *PEERS):
        with console.status(f"installing {peer.name}"):
            found[peer.name] = venvs.install(peer)
        console.print(f"{peer.name}: {found[peer.name].version or found[peer.name].reason}")
    return found


def present(installed: dict[str, venvs.Installed]) -> list[Contender]:
    """Contenders whose package, or whose policy in this version of driftbandit, is there."""
    there = [c for c in CONTENDERS if not installed[c.peer.name].reason]
    return [c for c in there if c.peer != OURS or hasattr(driftbandit, c.learner)]


def play(name: str, jobs_of, contenders: list[Contender]) -> None:
    """All jobs of a phase, two processes at a time, the slowest contenders first."""
    ordered = sorted(contenders, key=lambda c: (len(c.judge), -CONTENDERS.index(c)))
    work = [(c, jobs_of(c, world)) for c in ordered for world in worlds().values()]
    with Progress(console=console) as bar:
        lines = [line for _, jobs in work for line in jobs]
        missing = sum(not contest.stored(line) for line in lines)
        task = bar.add_task(name, total=missing)
        contest.play_all(work, lambda: bar.advance(task))


def main() -> None:
    installed = install()
    contenders = present(installed)
    judged = [c for c in contenders if not c.timed_only]
    play("tuning", contest.tuning, judged)
    play("judging", contest.judging, judged)
    speeds = timing.measure(contenders)
    ratios = timing.ratios(speeds)
    report.write(judged, worlds(), installed, speeds, ratios)
    console.print(timing.table(ratios))


if __name__ == "__main__":
    main()
