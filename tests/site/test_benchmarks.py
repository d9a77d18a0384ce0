"""The machinery of the benchmarks: the guard's verdicts, streams, and what an adapter must do."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import tiny
from driftbandit import DOMD, Circle, FixedArms, GivenArms, Stream, simulate

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize(
    ("measured", "better", "bad"),
    [(11.9, "less", False), (12.1, "less", True), (8.4, "more", False), (8.2, "more", True)],
)
def test_a_figure_slips_beyond_a_fifth(benchmark, measured, better, bad):
    assert benchmark("guard").slipped(measured, 10.0, better) == bad


def test_the_guard_measures_again_before_it_complains(benchmark):
    guard, values = benchmark("guard"), iter([20.0, 10.5, 99.0])
    noisy = guard.Figure(lambda: next(values), "less")
    assert guard.judge({"noisy": noisy}, {"noisy": 10.0}) == {"noisy": (10.5, "holds")}


def test_the_guard_names_what_slipped_and_skips_what_is_not_there(benchmark):
    guard = benchmark("guard")

    def missing():
        raise FileNotFoundError("no compiler (here)")

    figures = {
        "slow": guard.Figure(lambda: 5.0, "more"),
        "absent": guard.Figure(missing, "less"),
        "young": guard.Figure(lambda: 1.0, "less"),
    }
    verdicts = guard.judge(figures, {"slow": 10.0, "absent": 1.0})
    assert verdicts["slow"] == (5.0, "SLIPPED")
    assert verdicts["absent"] == (None, "skipped: no compiler")
    assert verdicts["young"] == (1.0, "new")


def test_every_stored_figure_is_one_of_the_guards(benchmark):
    guard = benchmark("guard")
    assert set(json.loads(guard.STORED.read_text())) <= set(guard.FIGURES)


@pytest.mark.parametrize("world", [Circle(horizon=40), Circle(horizon=40, arms=FixedArms(4))])
def test_a_stream_comes_back_as_it_was_drawn(benchmark, tmp_path, world):
    path = benchmark("peers.worlds").stream(tmp_path, world, seed=3)
    stream, (block,) = benchmark("peers.streams").load(path), world.blocks((3,), 40)
    np.testing.assert_array_equal(stream.arms, block.arms[:, 0])
    means = world.family.mu(np.einsum("tnd,td->tn", stream.arms, block.theta[:, 0]))
    np.testing.assert_allclose(stream.regret, means.max(axis=1, keepdims=True) - means, atol=1e-12)
    np.testing.assert_array_equal(stream.rewards, block.luck > 1.0 - means)
    assert stream.radius == world.radius
    assert len(stream.first(7).arms) == 7
    assert not list(tmp_path.glob("*.tmp*"))


@pytest.mark.parametrize(("module", "setting"), [("naive", {"half_life": 200}), ("ours", {})])
def test_an_adapter_plays_as_simulate_does(benchmark, tmp_path, module, setting):
    arms = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 9, 5))  # of all lengths: no ties
    world = Circle(horizon=60, radius=3.0, arms=GivenArms(arms))
    benchmark("peers.play").run(
        {
            "module": module,
            "learner": "DOMD",
            "setting": setting,
            "seed": 0,
            "rounds": 60,
            "stream": benchmark("peers.worlds").stream(tmp_path, world, 0),
            "out": tmp_path / "result.npz",
        }
    )
    found = np.load(tmp_path / "result.npz")
    run = simulate(DOMD(problem=world.problem), world, seeds=(0,))
    np.testing.assert_array_equal(found["choices"], run.choices[0])
    assert found["regret"] == pytest.approx(run.total[0])
    assert found["choose_ns"].shape == found["update_ns"].shape == (60,)
    assert found["bytes"] > 200


def test_the_registry_names_adapters_and_small_grids(benchmark):
    registry = benchmark("peers.registry")
    for contender in registry.CONTENDERS:
        assert (ROOT / "benchmarks" / "peers" / f"{contender.peer.module}.py").exists()
        assert 1 <= len(contender.grid) <= 8
        assert not set(contender.tune) & set(contender.judge)
    labels = [contender.label for contender in registry.CONTENDERS]
    assert len(set(labels)) == len(labels)


def test_settings_for_a_stream_are_chosen_before_the_window_that_counts(
    benchmark, tmp_path, monkeypatch
):
    tiny.write(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    worlds = benchmark("peers.worlds")
    monkeypatch.setattr(worlds, "PRACTICE", 45)
    world = Stream(data="weather", start=600, horizon=90, order="shuffled")
    room = worlds.practice(world)
    assert (room.start, room.horizon, room.window, room.order) == (550, 45, 50, "shuffled")
    assert worlds.practice(Circle()) == Circle()
    stream = benchmark("peers.streams").load(worlds.stream(tmp_path, room, 3))
    rounds = room.rounds.rewards[room.played(3)]
    np.testing.assert_array_equal(stream.rewards, rounds)
    np.testing.assert_array_equal(stream.regret, 1.0 - rounds)  # one class is true
    assert benchmark("peers.play").task(stream, 0).radius is None


def test_everybody_on_real_streams_has_the_same_small_budget(benchmark):
    contenders = benchmark("streams").CONTENDERS
    assert max(len(contender.grid) for contender in contenders) == 8
    assert len({contender.label for contender in contenders}) == len(contenders)
    ours = benchmark("peers.ours").LEARNERS
    task = benchmark("peers.learner").Task(4, 3, None, 1.0, 0, 100)
    for contender in contenders:
        assert contender.judge == (0, 1, 2, 3, 4)[: len(contender.judge)]  # pairs with AutoDOMD
        assert not set(contender.tune) & set(contender.judge)
        if contender.peer.name == "ours":
            for setting in contender.grid:
                assert 0 <= ours[contender.learner](task, **setting).choose(np.eye(4)[:3]) < 3


def test_the_page_of_real_streams_is_made_from_its_results(benchmark, tmp_path, monkeypatch):
    """On made-up results, and on the stored ones if they are there."""
    figure, rows = benchmark("streams_figure"), ["contender,stream,order,mean,half,difference"]
    rows[0] += ",difference_half,setting"
    for stream in ("elec2", "bike"):
        for order in ("time", "shuffled"):
            rows.append(f"{figure.HERO},{stream},{order},70.12,0.5,0,0,{{}}")
            rows.append(f'river,{stream},{order},72.0,0.5,1.88,0.9,"{{""width"": 0.3}}"')
    (tmp_path / "real-streams.csv").write_text("\n".join(rows) + "\n")
    tables = benchmark("tables")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "RESULTS", tmp_path)
        table = figure.table()
        assert f"| {figure.HERO} | 70.1 ± 0.5 |" in table
        assert "| river | **72.0 ± 0.5** |" in table
        assert "| river | width 0.3 |" in figure.settings()
        drawn = benchmark("charts").streams()
    assert drawn.count('class="dot hero"') == 2
    assert "river" in drawn
    text = (ROOT / "docs" / "streams.md").read_text()
    assert benchmark("readme").TABLES["late"]() in text
    if (tables.RESULTS / "real-streams.csv").exists():
        assert figure.table() in text
        assert figure.settings() in text
