"""The machinery of the benchmarks: the guard's verdicts, streams, and what an adapter must do."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from driftbandit import DOMD, Circle, FixedArms, GivenArms, simulate

ROOT = Path(__file__).parent.parent


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
