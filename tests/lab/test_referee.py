"""The referee: games with real processes, broken programs, and what a verdict rests on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from driftbandit import Circle, Policy, Scores, SignFlip, simulate
from driftbandit.lab import referee
from driftbandit.lab.report import scorecards
from driftbandit.lab.run.suite import parse_suite

EXAMPLES = Path(__file__).parents[2] / "examples" / "referee"
TINY = """
name = "tiny"
horizon = 300
seeds = 3
first_seed = 7

[[environments]]
type = "SignFlip"
radius = 3.0
label = "flip"

[[environments]]
type = "Composite"
drift = 1.0
level = 0.5
shifts = 3
arms = { type = "FixedArms", count = 4, intercept = 0.5 }
label = "drift"

[reference]
flip = 110.0
drift = 30.0
"""
TURNS = """
import json, sys
t = 0
for line in sys.stdin:
    message = json.loads(line)
    if "arms" in message:
        print(json.dumps({"arm": t % len(message["arms"])}), flush=True)
        t += 1
"""


class Turn(NamedTuple):
    t: np.ndarray


class InTurn(Policy):
    """Plays the arms in turn, as the program TURNS does."""

    def init(self, n=1):
        return Turn(np.zeros(n, dtype=np.int64))

    def scores(self, memory, arms):
        value = (np.arange(arms.shape[1]) == memory.t[:, None] % arms.shape[1]).astype(float)
        return Scores(value, np.zeros_like(value), value)

    def update(self, memory, x, r, noise=None):
        memory.t[:] += 1
        return memory


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "a program.py"
        path.write_text(text)
        return f'"{sys.executable}" "{path}"'

    return write


def test_a_program_plays_what_a_policy_of_the_same_mind_plays(program):
    world = SignFlip(horizon=120)
    run = simulate(InTurn(problem=world.problem), world, seeds=[3])
    game = referee.play_game(referee.command_of(program(TURNS)), world, 3)
    np.testing.assert_array_equal(game.regret, run.regret[0])
    np.testing.assert_array_equal(game.rewards, run.rewards[0])
    assert game.microseconds > 0


def test_a_bad_program_is_killed_and_a_card_can_be_compared(program, tmp_path):
    suite = parse_suite(TINY)
    seen = []
    found = referee.referee(
        program(TURNS), "AutoDOMD", suite, progress=lambda done, total: seen.append((done, total))
    )
    assert (found.verdict, found.exit_code) == ("KILL", 1)
    assert seen[-1][0] == seen[-1][1] in (8, 16, 24)  # environments x (seeds + 1), per look
    assert found.ratio[1] > 1.0
    assert found.rows[0][0] == "mean regret"
    path = tmp_path / "card.json"
    path.write_text(json.dumps(found.card))
    card = scorecards.read_card(path)
    assert len(scorecards.compare(card, card)) == 2
    assert {"smooth drift", "level shifts", "fixed arms"} <= set(scorecards.groups(card))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit('no model file')", "round 1, it stopped .exit code 1.: no model file"),
        ("print('hello', flush=True)\nimport time; time.sleep(9)", "not a JSON object"),
        ("import time; time.sleep(60)", "no answer after 0.5 s"),
        ("print('{\"arm\": 99}', flush=True)\ninput()", '"arm" must be 0 to 29'),
        ("print('{\"arm\": true}', flush=True)\ninput()", '"arm" must be 0 to 29'),
        (
            'print(\'{"arm": 1, "probabilities": [0.5, 0.5]}\', flush=True)\ninput()',
            "must be 30 numbers",
        ),
        ("import sys; sys.stdout.write('x' * 2_000_000)", "longer than"),
    ],
)
def test_a_program_that_breaks_the_rules_is_told_how(program, text, said):
    with pytest.raises(referee.ProgramError, match=said):
        referee.play_game(referee.command_of(program(text)), Circle(horizon=50), 0, timeout=0.5)


def test_a_broken_program_is_killed_with_the_reason(program):
    found = referee.referee(
        program("raise SystemExit(3)"), "AutoDOMD", parse_suite(TINY), workers=1
    )
    assert found.verdict == "KILL"
    assert "seed 7: in round 1, it stopped (exit code 3)" in found.why


def test_what_cannot_be_started_is_wrong_input():
    with pytest.raises(ValueError, match="cannot start 'no-such-program'"):
        referee.play_game(referee.command_of("no-such-program"), Circle(horizon=5), 0)
    with pytest.raises(ValueError, match="must name a program"):
        referee.command_of(" ")


def games(values):
    return {
        (world, k): referee.Game(np.array([value]), np.zeros(1), 1.0)
        for world, row in values.items()
        for k, value in enumerate(row)
    }


def test_the_interval_is_that_of_strata():
    rng = np.random.default_rng(0)
    mine, theirs = ({w: rng.gamma(9.0, size=5) for w in "abc"} for _ in range(2))
    found = referee.ratio_of_regrets(games(mine), games(theirs), dict.fromkeys("abc", 0.0))
    logs = np.log([mine[w] / theirs[w] for w in "abc"])
    spread = np.sqrt(logs.var(axis=1, ddof=1).sum() / 5) / 3
    half = stats.t.ppf(0.975, 12) * spread
    centre = logs.mean()
    np.testing.assert_allclose(np.log(found), [centre, centre - half, centre + half])
    back = referee.ratio_of_regrets(games(theirs), games(mine), dict.fromkeys("abc", 0.0))
    np.testing.assert_allclose(found[1] * back[2], 1.0)


def verdict(mine, theirs, floors):
    """What the referee says after as many looks as it needs."""
    for look in range(1, referee.LOOKS + 1):
        known = ({w: row[: 6 * look] for w, row in some.items()} for some in (mine, theirs))
        ratio = referee.ratio_of_regrets(*map(games, known), floors, referee.at_each_look())
        if referee.verdict_of(ratio, 0.05) != "CANNOT SAY":
            break
    return referee.verdict_of(ratio, 0.05)


def test_equal_players_are_rarely_killed_and_worse_ones_nearly_always():
    """Of 200 matches of equals at most 5 % end in KILL; of those 10 % worse at least 95 % do."""
    rng = np.random.default_rng(1)
    floors, size = {str(w): 0.0 for w in range(40)}, 6 * referee.LOOKS
    killed = [0, 0]
    for _ in range(200):
        theirs = {w: rng.gamma(8.0, size=size) for w in floors}  # games differ by 50 %
        for k, factor in enumerate((1.0, 1.1)):
            mine = {w: factor * rng.gamma(8.0, size=size) for w in floors}
            killed[k] += verdict(mine, theirs, floors) == "KILL"
    assert killed[0] <= 10
    assert killed[1] >= 190


def test_what_the_suites_seeds_do_not_decide_is_played_on(program):
    """An unknown program whose twin is the reference: every look is taken, the card has one."""
    suite = parse_suite(TINY.replace("300", "40").replace("seeds = 3", "seeds = 2"))
    seen = []
    found = referee.referee(
        program(TURNS), "Uniform", suite, margin=0.0, progress=lambda *x: seen.append(x)
    )
    assert found.verdict == "CANNOT SAY"
    assert seen[-1] == (18, 18)  # 2 environments x (2 seeds and the reference) x 3 looks
    assert len(found.card["seeds"]) == 2


@pytest.mark.parametrize("name", ["linucb.py", "egreedy.mjs"])
def test_the_examples_play(name):
    with_what = sys.executable if name.endswith(".py") else shutil.which("node")
    if with_what is None:
        pytest.skip("node is not installed")
    command = referee.command_of(f'"{with_what}" "{EXAMPLES / name}"')
    game = referee.play_game(command, Circle(horizon=400, radius=3.0, turns=0.2), 1)
    assert game.regret.sum() < 80  # playing at random loses 166


def test_the_command_has_exit_codes(program, tmp_path, monkeypatch):
    done = subprocess.run(
        [sys.executable, "-m", "driftbandit", "referee", "--exec", "no-such-program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "cannot start 'no-such-program'" in done.stderr
