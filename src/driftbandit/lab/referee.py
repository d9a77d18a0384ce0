"""A referee for any program: it plays a frozen suite against a reference policy.

The program speaks JSON lines. For every game, an environment and a seed, the referee starts it
afresh in an empty folder. In every round it reads `{"arms": [[...], ...]}`, answers `{"arm": 3}`
(`"probabilities"` may follow), and then reads `{"reward": 1.0}`. At the end its input is closed.

Both players meet the same arms and the same noise, so they are compared game by game. If the seeds
of the suite do not decide a match, as many seeds are played again, up to `LOOKS` times in all. The
interval is wide enough for all looks together.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from driftbandit import measures, simulate
from driftbandit.environments import Environment, Simulated
from driftbandit.lab.report.statistics import CONFIDENCE
from driftbandit.lab.run.suite import Suite, contenders, played, recipe_of
from driftbandit.lab.study.study import Study

KEEP, KILL, CANNOT_SAY = "KEEP", "KILL", "CANNOT SAY"
EXIT_CODES = {KEEP: 0, KILL: 1, CANNOT_SAY: 3}  # 2 is for wrong input, as in every command
LONGEST_ANSWER = 1 << 20  # bytes
FLOOR = 0.005  # of a random player's regret: where both hardly lose, chance decides the ratio
LOOKS = 3  # times that the referee asks whether it can say something, each with more seeds
WINDOW = 100  # rounds on either side of a jump
Floats = NDArray[np.float64]


class ProgramError(Exception):
    """The program broke the rules: it stopped, answered too late, or answered something else."""


class Game(NamedTuple):
    """Regret and reward of every round of one environment and seed, and the cost of an answer."""

    regret: Floats
    rewards: Floats
    microseconds: float


@dataclass(frozen=True)
class Verdict:
    """What the referee says of a program, and why."""

    verdict: str
    why: str
    ratio: tuple[float, float, float] | None  # of regrets, program over reference, and its interval
    rows: tuple[tuple[str, str, str], ...]  # measure, program, reference
    card: dict[str, Any]  # of the suite, for `driftbandit compare`

    @property
    def exit_code(self) -> int:
        """Return 0 for KEEP, 1 for KILL, 3 for CANNOT SAY."""
        return EXIT_CODES[self.verdict]


class Program:
    """A running program, its working folder, and a watch that ends it if it answers too late."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self.timeout, self._late = timeout, False
        self._folder = tempfile.mkdtemp(prefix="driftbandit-referee-")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed in `close`
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "SYSTEMROOT")}
        try:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=kept | {"HOME": self._folder, "TMPDIR": self._folder},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            self._remove()
            raise ValueError(f"cannot start {command[0]!r}: {error.strerror}") from None
        self._deadline = math.inf
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._end_if_late, daemon=True)
        self._watch.start()

    def ask(self, lines: bytes) -> dict[str, Any]:
        """Write lines and return the answer to the last one."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._deadline = time.monotonic() + self.timeout
        try:
            self._process.stdin.write(lines)
            self._process.stdin.flush()
            answer = self._process.stdout.readline(LONGEST_ANSWER)
        except OSError:
            answer = b""
        self._deadline = math.inf
        if not answer.endswith(b"\n"):
            raise ProgramError(self._fault(answer))
        try:
            found = msgspec.json.decode(answer)
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, dict):
            raise ProgramError(f"it wrote {answer[:80]!r}, which is not a JSON object on one line")
        return found

    def _fault(self, answer: bytes) -> str:
        if self._late:
            return f"it had no answer after {self.timeout:g} s"
        if len(answer) >= LONGEST_ANSWER:
            return f"its answer is longer than {LONGEST_ANSWER} bytes"
        code = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return f"it stopped (exit code {code})" + (f": {said[-1]}" if said else "")

    def _end_if_late(self) -> None:
        while not self._closed.wait(0.05):
            if time.monotonic() > self._deadline:
                self._late = True
                self._kill()
                return

    def _kill(self) -> None:
        """End the program and whatever it started."""
        if os.name == "posix":
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
        else:
            self._process.kill()

    def close(self) -> None:
        """End the program and remove its folder."""
        self._closed.set()
        self._kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._watch.join()
        self._remove()

    def _remove(self) -> None:
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def command_of(text: str) -> list[str]:
    """Return the words of a command, with files of this folder by their full path: the program
    runs in a folder of its own."""
    words = shlex.split(text)
    if not words:
        raise ValueError("--exec must name a program, as 'python my_policy.py'")
    return [str(Path(word).resolve()) if Path(word).is_file() else word for word in words]


def play_game(
    command: Sequence[str], environment: Environment, seed: int, *, timeout: float = 10.0
) -> Game:
    """Play one game with a fresh process; `timeout` is for one answer, in seconds."""
    T = environment.horizon
    regret, rewards, waited, lines, t = np.empty(T), np.empty(T), np.empty(T), b"", 0
    with Program(command, timeout) as program:
        for block in environment.blocks([seed], size=500):
            for k, arms in enumerate(block.arms):
                lines += msgspec.json.encode({"arms": arms[0].tolist()}) + b"\n"
                tic = time.perf_counter()
                try:
                    choice = _arm(program.ask(lines), len(arms[0]))
                except ProgramError as error:
                    raise ProgramError(f"in round {t + 1}, {error}") from None
                waited[t] = time.perf_counter() - tic
                reward, lost = block.play(k, np.array([choice]))
                regret[t], rewards[t] = lost[0], reward[0]
                lines = msgspec.json.encode({"reward": float(reward[0])}) + b"\n"
                t += 1
    return Game(regret, rewards, float(np.median(waited)) * 1e6)


def _arm(answer: Mapping[str, Any], count: int) -> int:
    """Return the arm of an answer; refuse what is no arm and what are no probabilities."""
    arm, shares = answer.get("arm"), answer.get("probabilities")
    if not isinstance(arm, int) or isinstance(arm, bool) or not 0 <= arm < count:
        raise ProgramError(f'it answered {json.dumps(answer)[:80]}: "arm" must be 0 to {count - 1}')
    if shares is not None:
        numbers = isinstance(shares, list) and all(isinstance(p, (int, float)) for p in shares)
        if not numbers or len(shares) != count or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
            raise ProgramError(f'"probabilities" must be {count} numbers of at least 0 with sum 1')
        if shares[arm] == 0:
            raise ProgramError(f"it played arm {arm}, to which it gave probability 0")
    return arm


Games = dict[tuple[str, int], Game]  # by label of the environment, and seed


def referee(
    command: str,
    against: str,
    suite: Suite,
    *,
    margin: float = 0.05,
    timeout: float = 10.0,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Play a program and a reference policy on a suite, and say whether to keep the program.

    KILL: its regret is above the reference's, with 95 % confidence. KEEP: it is below 1 + `margin`
    times the reference's, with the same confidence. Otherwise more seeds are played; if `LOOKS`
    times as many as the suite has do not decide, the referee cannot say. A program that breaks
    the rules is killed.
    """
    study, _ = suite.study(*contenders([against]))
    words, worlds = command_of(command), study.worlds()
    floors = {label: FLOOR * suite.reference[label] for label, _, _ in worlds}
    mine: Games = {}
    theirs: Games = {}
    recipes: dict[str, Any] = {}
    size = len(worlds) * (study.seeds + 1)
    for look in range(LOOKS):
        first = study.first_seed + look * study.seeds
        seeds = list(range(first, first + study.seeds))

        def count(done: int, before: int = look * size) -> None:
            progress(before + done, before + size)

        try:
            mine |= _program_games(words, worlds, seeds, timeout, workers, count)
        except ProgramError as error:
            return Verdict(KILL, str(error), None, (), {})
        name = _policy_games(study, worlds, seeds, theirs, recipes, count)
        found = ratio_of_regrets(mine, theirs, floors, at_each_look())
        if verdict_of(found, margin) != CANNOT_SAY:
            break
    seeds = list(range(study.first_seed, study.first_seed + study.seeds))  # those of every card
    own = {label: {"exec": command} for label, _, _ in worlds}
    card = _card(suite, worlds, seeds, [(command, mine, own), (name, theirs, recipes)])
    rows = _rows(mine, theirs, {label: world for label, world, _ in worlds})
    return Verdict(verdict_of(found, margin), _why(found, margin), found, rows, card)


def at_each_look() -> float:
    """Return the confidence of one interval with which all of them hold with 95 %."""
    return 1.0 - (1.0 - CONFIDENCE) / LOOKS


def _program_games(
    words: Sequence[str],
    worlds: Sequence[tuple[str, Environment, Any]],
    seeds: Sequence[int],
    timeout: float,
    workers: int | None,
    count: Callable[[int], None],
) -> Games:
    """Return the games of a program, several at once; a broken rule ends them all."""
    games: Games = {}
    broken: list[str] = []

    def play(job: tuple[str, Environment, int]) -> None:
        label, world, seed = job
        if broken:
            return
        try:
            games[label, seed] = play_game(words, world, seed, timeout=timeout)
        except ProgramError as error:
            broken.append(f"{label}, seed {seed}: {error}")

    jobs = [(label, world, seed) for label, world, _ in worlds for seed in seeds]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for done, _ in enumerate(pool.map(play, jobs), start=1):
            count(done)
    if broken:
        raise ProgramError(broken[0])
    return games


def _policy_games(
    study: Study,
    worlds: Sequence[tuple[str, Environment, Any]],
    seeds: Sequence[int],
    games: Games,
    recipes: dict[str, Any],
    count: Callable[[int], None],
) -> str:
    """Add the games of the reference policy, and its recipes; return its name."""
    name = ""
    for done, (label, world, _) in enumerate(worlds, start=1):
        ((name, policy, _),) = study.contenders(world)
        recipes[label] = recipe_of(policy)
        run = simulate(policy, world, seeds=seeds)
        for k, seed in enumerate(seeds):
            games[label, seed] = Game(run.regret[k], run.rewards[k], run.microseconds)
        count(len(worlds) * len(seeds) + done)
    return name


def ratio_of_regrets(
    mine: Mapping[tuple[str, int], Game],
    theirs: Mapping[tuple[str, int], Game],
    floors: Mapping[str, float],
    confidence: float = CONFIDENCE,
) -> tuple[float, float, float]:
    """Return the geometric mean of the ratios of regrets, game by game, and its interval.

    Environments are strata: they are the suite, and only what a seed brings is chance.
    """
    logs: dict[str, list[float]] = {}
    for (label, seed), game in mine.items():
        ours, other = (float(g.regret.sum()) + floors[label] for g in (game, theirs[label, seed]))
        logs.setdefault(label, []).append(math.log(ours / other))
    groups = [np.array(values) for values in logs.values()]
    mean = float(np.mean([group.mean() for group in groups]))
    variance = sum(group.var(ddof=1) / len(group) for group in groups) / len(groups) ** 2
    degrees = sum(len(group) - 1 for group in groups)
    half = float(stdtrit(degrees, 0.5 + confidence / 2) * math.sqrt(variance))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def verdict_of(found: tuple[float, float, float], margin: float) -> str:
    """Return KILL, KEEP or CANNOT SAY for a ratio of regrets and its interval."""
    _, low, high = found
    if low > 1.0:
        return KILL
    return KEEP if high < 1.0 + margin else CANNOT_SAY


def _why(found: tuple[float, float, float], margin: float) -> str:
    ratio, low, high = found
    more = "it loses less" if high < 1.0 else f"less than {margin:.0%} more, if more at all"
    words = {KILL: "it loses more", KEEP: more, CANNOT_SAY: "too close to call"}
    said = f"{ratio:.3f} times the reference's regret, 95 % between {low:.3f} and {high:.3f}"
    return f"{said}: {words[verdict_of(found, margin)]}"


def _rows(
    mine: Mapping[tuple[str, int], Game],
    theirs: Mapping[tuple[str, int], Game],
    worlds: Mapping[str, Environment],
) -> tuple[tuple[str, str, str], ...]:
    """The measures of both players, as texts."""

    def row(name: str, measure: Callable[[Any], float], form: str) -> tuple[str, str, str]:
        return name, f"{measure(mine):{form}}", f"{measure(theirs):{form}}"

    def mean(of: Callable[[Game], float]) -> Callable[[Any], float]:
        return lambda games: float(np.mean([of(game) for game in games.values()]))

    return (
        row("mean regret", mean(lambda g: float(g.regret.sum())), ".1f"),
        row("best arm, share of rounds", mean(lambda g: _best_arm(g)), ".3f"),
        row("rounds to recover from a jump", lambda games: _recovery(games, worlds), ".0f"),
        row("us per decision", mean(lambda g: g.microseconds), ".0f"),
    )


def _best_arm(game: Game) -> float:
    return float(measures.best_arm_rate(game.regret[None])[0])


def _recovery(games: Mapping[tuple[str, int], Game], worlds: Mapping[str, Environment]) -> float:
    """Return the median time to recover from the largest jump, over games that have one."""
    times = []
    for (label, seed), game in games.items():
        world = worlds[label]
        if not isinstance(world, Simulated) or not world.change_points:
            continue
        moves = np.linalg.norm(np.diff(world.path(seed), axis=0), axis=1)
        moves[: WINDOW - 1] = moves[len(moves) - WINDOW + 1 :] = 0.0
        if moves.max() > 0.0:
            low = world.problem.family.low
            change = int(moves.argmax()) + 1
            rewards = game.rewards[None]
            times += [measures.recovery_time(rewards, change, length=WINDOW, low=low)[0]]
    return float(np.median(times)) if times else math.nan


def _card(
    suite: Suite,
    worlds: Sequence[tuple[str, Environment, Any]],
    seeds: list[int],
    players: Sequence[tuple[str, Mapping[tuple[str, int], Game], Mapping[str, Any]]],
) -> dict[str, Any]:
    """Return the card of both players: their name, games, and recipe in each environment."""
    policies: dict[str, Any] = {}
    for name, games, recipes in players:
        for label, _, _ in worlds:
            here = [games[label, seed] for seed in seeds]
            regrets = np.array([game.regret.sum() for game in here])
            cost = float(np.median([game.microseconds for game in here]))
            policies.setdefault(name, {})[label] = played(regrets, cost, recipes[label])
    return suite.card_head(worlds, seeds) | {"policies": policies}
