"""Simulation: paired, reproducible, honest, and near the expected figures."""

import numpy as np
import pytest

from driftbandit import DOMD, GLBOMD, Circle, Oracle, Run, SignFlip, Uniform, simulate, theory

WORLD = Circle(horizon=300)


def test_a_seed_does_not_depend_on_its_company():
    policy = DOMD(problem=WORLD.problem)
    together, alone = simulate(policy, WORLD, (3, 8, 1)), simulate(policy, WORLD, (8,))
    for name in ("regret", "choices", "rewards"):
        np.testing.assert_array_equal(getattr(together, name)[1:2], getattr(alone, name))


def test_random_policies_have_their_own_luck_per_seed():
    run = simulate(Uniform(problem=WORLD.problem), WORLD, range(4))
    assert len({tuple(row) for row in run.choices}) == 4
    counts = np.bincount(run.choices.ravel(), minlength=30)
    assert counts.min() > 15  # 40 expected of each of the 30 arms


def test_oracle_has_no_regret_and_nobody_has_less():
    oracle = simulate(Oracle(problem=WORLD.problem), WORLD, range(3))
    assert oracle.total.max() <= 1e-10
    assert (simulate(Uniform(problem=WORLD.problem), WORLD, range(3)).regret >= 0).all()


def test_times_are_positive_and_per_seed():
    run = simulate(DOMD(problem=WORLD.problem), WORLD, range(50))
    assert (run.choose_ns > 0).all()
    assert (run.update_ns > 0).all()


def test_progress_counts_every_round():
    done = []
    simulate(Uniform(problem=WORLD.problem), WORLD, (0,), progress=done.append)
    assert sum(done) == 300


def test_progress_bar_is_silent_without_a_terminal(capsys):
    simulate(Uniform(problem=WORLD.problem), WORLD, (0,), progress=True)
    assert capsys.readouterr() == ("", "")


def test_run_is_saved_loaded_and_framed(tmp_path):
    run = simulate(DOMD(problem=WORLD.problem), WORLD, (2, 4))
    run.save(tmp_path / "a run.npz")
    copy = Run.load(tmp_path / "a run.npz")
    assert (copy.policy, copy.environment, copy.seeds) == (run.policy, WORLD, (2, 4))
    np.testing.assert_array_equal(copy.regret, run.regret)
    frame = copy.to_pandas()
    assert len(frame) == 600
    np.testing.assert_allclose(frame[frame["round"] == 300].cumulative, run.total)
    np.testing.assert_allclose(run.mean()[-1], run.total.mean())
    np.testing.assert_allclose(run.std()[-1], run.total.std(ddof=1))
    assert [p.name for p in tmp_path.iterdir()] == ["a run.npz"]


def test_run_plots_its_mean_and_band():
    from matplotlib.figure import Figure

    run = simulate(DOMD(problem=WORLD.problem), WORLD, (2, 4))
    ax = run.plot(Figure().subplots())
    np.testing.assert_allclose(ax.lines[0].get_ydata(), run.mean())
    assert ax.get_legend_handles_labels()[1] == ["DOMD-GLB"]


@pytest.mark.parametrize(
    ("world", "domd", "omd", "uniform"),
    [
        (Circle(radius=1.0), 450, 620, 955),
        (SignFlip(radius=1.0), 345, 755, 957),
        (Circle(radius=3.0), 930, 1200, 2075),
        (SignFlip(radius=3.0), 515, 1100, 2080),
    ],
    ids=lambda v: f"{v.name} {v.radius}" if hasattr(v, "radius") else "",
)
def test_figures_of_an_independent_check_are_met_within_15_per_cent(world, domd, omd, uniform):
    for kind, expected in ((DOMD, domd), (GLBOMD, omd)):
        run = simulate(kind.from_theory(world.problem, delta=0.01, scale=0.2), world, range(20))
        assert run.total.mean() == pytest.approx(expected, rel=0.15)
    run = simulate(Uniform(problem=world.problem), world, range(20))
    assert run.total.mean() == pytest.approx(uniform, rel=0.03)


@pytest.mark.parametrize(
    "world", [Circle(horizon=2000), SignFlip(horizon=2000)], ids=lambda w: w.name
)
def test_runs_stay_under_the_theorems_bound(world):
    """At scale 1 and delta = 0.1; the bounds are loose, so this guards against blunders."""
    run = simulate(DOMD.from_theory(world.problem, delta=0.1), world, range(5))
    bound = (
        theory.regret_bound_drifting(world.problem, delta=0.1)
        if world.change_points is None
        else theory.regret_bound_piecewise(world.problem, delta=0.1)
    )
    assert run.total.max() <= bound


def test_confidence_set_covers_the_truth_in_a_drifting_world():
    """Theorem 1: ||theta_t - theta*_t||_{H_t} <= beta_t + iota V_t for all t."""
    world = Circle(horizon=400)
    policy = DOMD.from_theory(world.problem, delta=0.05)
    V = theory.drift_kernel(world.path(0), policy.discount)
    memory = policy.init(1)
    for t, (block) in enumerate(world.blocks((0,), 1), start=1):
        error = memory.theta[0] - block.theta[0, 0]
        radius = policy.width(memory)[0] + theory.iota(world.problem) * V[t - 1]
        assert np.sqrt(error @ memory.H[0] @ error) <= radius
        arm = policy.choose(memory, block.arms[0])
        x = block.arms[0][[0], arm]
        memory = policy.update(memory, x, world.family.draw(x @ block.theta[0, 0], block.luck[0]))
