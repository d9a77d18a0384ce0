"""Judging mutants: tests are collected once, then each mutant gets a child process of its own.

The child puts the changed code into the functions that are there already, so that everyone who
imported them meets the change, and runs tests until one fails, first those that noticed a change to
the same function before. Each test has a time limit, so that an endless loop ends; it counts as
noticed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

from benchmarks.mutants.changes import Mutant, changed

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "driftbandit"
NOBODY, CLOCK = -1, -2  # what noticed a mutant: the place of a test, or one of these
NUMBER = struct.Struct("i")
PATIENCE = 30.0  # seconds that a test may take for each of its seconds of processor time


class Child(NamedTuple):
    pid: int
    mutant: Mutant
    verdict: int  # a pipe


def module_of(file: str) -> ModuleType:
    return sys.modules["driftbandit." + file.removesuffix(".py").replace("/", ".")]


def put(mutant: Mutant) -> None:
    """Change the module in place."""
    module = module_of(mutant.file)
    fresh = {"__name__": module.__name__, "__file__": module.__file__}
    with _registry_kept():
        exec(compile(changed(PACKAGE, mutant), str(module.__file__), "exec"), fresh)
    for name, new in fresh.items():
        old = vars(module).get(name)
        if isinstance(new, (FunctionType, type)) or hasattr(new, "__wrapped__"):
            _replace(old, new, module.__name__)
        elif isinstance(new, (bool, int, float)) and new != old:
            for other in list(sys.modules.values()):
                if getattr(other, "__dict__", {}).get(name) is old:
                    setattr(other, name, new)


@contextlib.contextmanager
def _registry_kept() -> Iterator[None]:
    """Recipes register themselves by name: those of the changed module are only donors of code."""
    from driftbandit.recipe import Recipe

    known = dict(Recipe.registry)
    try:
        yield
    finally:
        Recipe.registry.clear()
        Recipe.registry.update(known)


def _replace(old: Any, new: Any, module: str) -> None:
    """The code of a function, of a cached one, or of the functions in a class."""
    if getattr(new, "__module__", None) != module:
        return
    if isinstance(new, type):
        for name, member in vars(new).items():
            _replace_member(old, name, member, module)
        return
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    old, new = getattr(old, "__wrapped__", old), getattr(new, "__wrapped__", new)
    old.__code__, old.__defaults__ = new.__code__, new.__defaults__
    old.__kwdefaults__ = new.__kwdefaults__


def _replace_member(old: type, name: str, new: Any, module: str) -> None:
    """A method, however it is wrapped, or a number, such as the default of a field."""
    was = vars(old).get(name)
    if isinstance(new, (FunctionType, property, staticmethod, classmethod, cached_property)):
        _replace(_bare(was), _bare(new), module)
    elif isinstance(new, (bool, int, float)) and not name.startswith("__") and new != was:
        type.__setattr__(old, name, new)


def _bare(member: Any) -> Any:
    """The function inside a property, a cached property, a static or a class method."""
    for name in ("fget", "func", "__func__"):
        member = getattr(member, name, member)
    return member


class Judge:
    """A plugin of pytest that runs the collected tests once a mutant, instead of once."""

    def __init__(self, mutants: list[Mutant], processes: int) -> None:
        self.mutants, self.processes = mutants, processes
        self.survivors: list[Mutant] = []
        self.done = False
        self.favourites: dict[str, list[int]] = {}  # tests that noticed, by file and function

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            return False  # pytest has said what cannot be imported
        self.items = session.items
        self.seconds = self.baseline()
        self.quickest = sorted(self.seconds, key=self.seconds.__getitem__)
        for number, (mutant, noticed) in enumerate(self.judged(), start=1):
            if noticed == NOBODY:
                self.survivors.append(mutant)
                print(f"\nSURVIVES {mutant.file}:{mutant.line}\n    {mutant.key}", flush=True)
            elif noticed >= 0:
                favourites = self.favourites.setdefault(f"{mutant.file} {mutant.function}", [])
                if noticed in favourites:
                    favourites.remove(noticed)
                favourites.insert(0, noticed)
            if number % 200 == 0:
                print(f"\n{number} of {len(self.mutants)}", flush=True)
        self.done = True
        return True

    def baseline(self) -> dict[int, float]:
        """Seconds of processor time of each test on the code as it is, which must pass."""
        seconds = {}
        for place in range(len(self.items)):
            tic = time.process_time()
            if not self.passes(place):
                pytest.exit(f"{self.items[place].nodeid} fails without any change: mend it first")
            seconds[place] = time.process_time() - tic
        return seconds

    def passes(self, place: int) -> bool:
        from _pytest.runner import runtestprotocol

        reports = runtestprotocol(self.items[place], nextitem=None, log=False)
        return not any(report.failed for report in reports)

    def judged(self) -> Iterator[tuple[Mutant, int]]:
        """Each mutant with who noticed it, in the order in which they end."""
        waiting, running = list(reversed(self.mutants)), dict[int, Child]()
        try:
            while waiting or running:
                while waiting and len(running) < self.processes:
                    child = self.start(waiting.pop())
                    running[child.pid] = child
                pid, _ = os.wait()
                child = running.pop(pid)
                said = os.read(child.verdict, NUMBER.size)
                os.close(child.verdict)
                yield child.mutant, NUMBER.unpack(said)[0] if said else CLOCK
        finally:
            for pid in running:
                os.kill(pid, signal.SIGKILL)

    def start(self, mutant: Mutant) -> Child:
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            return Child(pid, mutant, read)
        try:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            os.write(write, NUMBER.pack(self.noticed(mutant)))
        finally:
            os._exit(0)

    def noticed(self, mutant: Mutant) -> int:
        """The place of the first test that fails."""
        favourites = self.favourites.get(f"{mutant.file} {mutant.function}", [])
        try:
            put(mutant)
        except Exception:
            return CLOCK  # it cannot even be imported
        order = [*favourites, *(place for place in self.quickest if place not in favourites)]
        return next((place for place in order if not self.passes_in_time(place)), NOBODY)

    def passes_in_time(self, place: int) -> bool:
        """The timer kills the child, which then says nothing. It counts processor time, so that a
        busy machine makes no mutant look noticed; a second one ends what waits without working."""
        limit = 10.0 + 5.0 * self.seconds[place]
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE * limit)
        return self.passes(place)
