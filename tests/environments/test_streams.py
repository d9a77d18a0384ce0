"""Streams as environments: rewards on record, windows, replicates."""

import hashlib

import numpy as np
import pytest

import tiny
from driftbandit import DOMD, AutoDOMD, Delay, Oracle, Stream, Uniform, datasets, simulate
from driftbandit.checks import environment_checks
from driftbandit.lab import RunStore, execute, load_results, parse_study

STUDY = """
name = "tiny"
horizon = 90
seeds = 2
points = 4

[[environments]]
type = "Stream"
data = ["elec2", "weather"]
order = ["time", "shuffled"]
start = 500

[[environments]]
type = "Stream"
data = "elec2"
start = 500
delay = { type = "Delay", mean = 1, zero = 8 }
label = "late"

[[policies]]
type = "DOMD"
tuning = "practical"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    tiny.write(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("check", environment_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("order", ["time", "shuffled"])
def test_contract(check, order):
    check(Stream(data="bike", order=order, start=510, horizon=40))


def test_a_run_against_the_table():
    """Choices, rewards and regret of a learner that is trained by hand from the arrays."""
    world, data = Stream(data="elec2", start=520, horizon=90), datasets.load("elec2", start=520)
    policy = DOMD(problem=world.problem)
    run = simulate(policy, world, (3, 8))
    for row, seed in enumerate((3, 8)):
        memory, rounds = policy.init(1), world.played(seed)
        for t, k in enumerate(rounds):
            (choice,) = policy.choose(memory, data.arms[[k]])
            reward = data.rewards[k, choice]
            assert run.choices[row, t] == choice
            assert run.rewards[row, t] == reward
            assert run.regret[row, t] == data.rewards[k].max() - reward
            memory = policy.update(memory, data.arms[[k], choice], np.array([reward]))


def test_a_seed_leaves_out_a_tenth_and_orders_share_their_rounds():
    time, shuffled = (Stream(order=o, start=500, horizon=180) for o in ("time", "shuffled"))
    assert time.window == 200
    for seed in (0, 5):
        rounds = time.played(seed)
        assert (np.diff(rounds) > 0).all()
        assert len(rounds) == 180
        assert set(shuffled.played(seed)) == set(rounds)
        assert not np.array_equal(shuffled.played(seed), rounds)
    assert set(time.played(0)) != set(time.played(5))
    whole = Stream(start=500, horizon=200, drop=0)
    np.testing.assert_array_equal(whole.played(7), np.arange(200))


def test_learning_pays_in_a_stream_that_can_be_learnt():
    world = Stream(data="weather", start=500, horizon=180)
    auto = simulate(AutoDOMD(problem=world.problem), world, range(4)).rewards.mean()
    assert auto > simulate(Uniform(problem=world.problem), world, range(4)).rewards.mean() + 0.1


def test_what_is_not_known_of_a_stream_is_said():
    world = Stream(data="elec2", start=500, horizon=50)
    problem = world.problem
    assert (problem.radius, problem.horizon, problem.path_length) == (None, None, None)
    with pytest.raises(ValueError, match="needs radius"):
        DOMD.from_theory(problem)
    with pytest.raises(ValueError, match="nobody knows for elec2, time"):
        simulate(Oracle(problem=problem), world, (0,))
    seen = []
    simulate(Uniform(problem=problem), world, (0,), watch=lambda t, m, theta: seen.append(theta))
    assert np.isnan(seen).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": "elek"}, "known are elec2"),
        ({"order": "random"}, 'order must be "time" or "shuffled"'),
        ({"drop": 1.0}, "drop must be below 1"),
        ({"start": -1}, "start must be"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        Stream(**options)


def test_wrong_data():
    world = Stream(start=500, horizon=181)
    with pytest.raises(ValueError, match="has 200 rounds from 500 on, but horizon=181"):
        simulate(Uniform(problem=world.problem), world, (0,))


@pytest.mark.parametrize(("row", "same"), [(601, True), (600, False)])
def test_a_checksum_is_of_the_outcomes_in_the_window(monkeypatch, tmp_path, row, same):
    """What happens after the window does not count; any outcome inside does."""
    played = datasets.load("elec2", start=500).rewards[:100]
    checksum = hashlib.sha256(played.tobytes()).hexdigest()[:8]
    world = Stream(start=500, horizon=90, checksum=checksum)
    assert world.rounds
    lines = tiny.elec().splitlines()  # the heading, then row 0, 1, ...
    lines[row] = lines[row][:-1] + str(1 - int(lines[row][-1]))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "elec.csv").write_text("\n".join(lines))
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path / "other"))
    if same:
        assert world.rounds
    else:
        with pytest.raises(ValueError, match=f"but {checksum} is asked for, and results of diff"):
            _ = world.rounds


def test_a_stream_is_described_without_its_data(monkeypatch, tmp_path):
    """Studies are listed and reports drawn on machines that have no data."""
    shapes = {name: (w := Stream(data=name)).problem.dim * w.n_arms for name in datasets.names()}
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path / "nothing here"))
    again = {name: (w := Stream(data=name)).problem.dim * w.n_arms for name in datasets.names()}
    assert again == shapes
    world = Stream(data="weather", start=500, horizon=30)
    assert Stream.from_dict(world.to_dict()) == world


@pytest.mark.parametrize("name", datasets.names())
def test_the_announced_shape_is_that_of_the_data(name):
    start = 50 if name == "flights" else 500
    assert datasets.load(name, start=start).arms.shape[1:] == datasets.shape(name)


def test_streams_in_a_study(tmp_path):
    """In both orders; where rewards are late, each seed is played alone."""
    execute(parse_study(STUDY, "tiny"), STUDY, RunStore(tmp_path / "out"))
    frame = load_results(tmp_path / "out").sort("seed", "round")
    names = [f"{data}, {order}" for data in ("elec2", "weather") for order in ("time", "shuffled")]
    assert set(frame["environment"]) == {*names, "late"}
    assert frame["error"].is_nan().all()
    final = frame.filter(frame["round"] == 90)
    np.testing.assert_allclose(final["reward"] + final["regret"], 90)  # one class is true
    world = Stream(start=500, horizon=90, delay=Delay(mean=1, zero=8))
    run = simulate(DOMD(problem=world.problem), world, range(2))
    late = final.filter(final["environment"] == "late")
    np.testing.assert_array_equal(late["regret"], run.total)
