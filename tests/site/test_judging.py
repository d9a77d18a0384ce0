"""The benchmarks that judge AutoDOMD: what they count, and where their numbers go."""

import importlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from driftbandit import AutoDOMD, Circle, FixedArms, Problem, Stationary, simulate

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def results(benchmark, monkeypatch, tmp_path):
    """Stored results go to an empty folder."""
    monkeypatch.setattr("benchmarks.tables.RESULTS", tmp_path)
    return tmp_path


def test_a_question_is_answered_in_the_round_it_is_asked(benchmark):
    explain = benchmark("explain")
    world = Circle(horizon=120, dim=2)
    said = explain.words(world, {40, 120}, range(3))
    policy, states = AutoDOMD(problem=world.problem), {}

    def watch(t, memory, theta):
        states[t] = [found.state for found in policy.explain(memory)]

    simulate(policy, world, range(3), watch=watch)
    assert said == {t: Counter(states[t]) for t in (40, 120)}
    assert said[40] == {"learning": 3}


def test_just_changed_is_right_where_theta_moves(benchmark):
    explain = benchmark("explain")
    said = Counter({"drifting": 5, "just changed": 3, "stationary": 2})
    case = explain.Case("w", Circle(), 9, explain.DRIFT)
    assert explain.judged(case, said)["right"] == 8
    assert explain.judged(case._replace(truth=explain.REST), said)["right"] == 2
    unknown = explain.judged(case._replace(truth=explain.OPEN), said)
    assert unknown["right"] == ""
    assert explain.cells(unknown)[2:] == ["unknown", "stationary 2, drifting 5, just changed 3", ""]


def test_every_kind_of_world_has_the_questions_that_the_page_promises(benchmark):
    explain = benchmark("explain")
    cases = {kind: list(made()) for kind, made in explain.KINDS.items()}
    labels = [case.label for some in cases.values() for case in some]
    assert len(set(labels)) == len(labels)
    assert {case.world.dim for case in cases["at rest"]} == {2, 5, 20}
    shuffled = {case.label for case in cases["streams"] if case.truth == explain.REST}
    assert shuffled == {f"{name}, shuffled" for name in explain.WINDOWS}
    for case in cases["drift and flips"]:
        path = case.world.path(0)[max(0, case.asked - 300) : case.asked]
        moved = not np.array_equal(path[0], path[-1])
        assert case.truth == explain.OPEN or moved == (case.truth == explain.DRIFT)


def test_shares_are_summed_by_kind_and_only_where_the_truth_is_known(benchmark, results):
    explain, tables = benchmark("explain"), benchmark("tables")
    line = {"round": 1, **dict.fromkeys(explain.WORDS, 0)}
    tables.write(
        "explain",
        [
            {"kind": "a", "world": "w", "truth": "stationary", "seeds": 10, "right": 9} | line,
            {"kind": "a", "world": "v", "truth": "drifting", "seeds": 10, "right": 10} | line,
            {"kind": "a", "world": "u", "truth": "", "seeds": 10, "right": ""} | line,
        ],
    )
    assert explain.summary() == "a 95 [75, 100] % of 20 runs"
    assert len(explain.table().splitlines()) == 5


def test_the_best_fixed_setting_has_the_least_regret_of_all(benchmark, monkeypatch):
    rare = benchmark("rare")
    monkeypatch.setattr(rare, "GRID", {"discount": (0.9, 1.0), "bonus": (0.0, 2.0)})
    world = rare.worlds(150)["3 %, S = 3, 20 fixed arms"]
    best, setting = rare.best_fixed(world, range(3))
    regrets = {
        (gamma, bonus): simulate(
            rare.DOMD(problem=rare.unknown(world), step=1.0, discount=gamma, bonus=bonus),
            world,
            range(3),
        ).total.mean()
        for gamma in (0.9, 1.0)
        for bonus in (0.0, 2.0)
    }
    assert (best.discount, best.bonus) == min(regrets, key=regrets.get)
    assert setting == f"discount {best.discount:g}, bonus {best.bonus:g}"
    assert world.family.mu(world.level) == pytest.approx(0.03, abs=1e-4)
    assert rare.unknown(world).radius is None
    assert not set(rare.CHOOSE) & set(rare.JUDGE)


def test_rare_clicks_end_in_one_line_for_all(benchmark, monkeypatch, results):
    rare, tables = benchmark("rare"), benchmark("tables")
    monkeypatch.setattr(rare, "GRID", {"discount": (1.0,)})
    found = list(rare.lines(range(1), range(2), 60))
    assert len(found) == 9
    ratios = [line["ratio"] for line in found]
    assert ratios[-1] == pytest.approx(np.exp(np.mean(np.log(ratios[:-1]))))
    tables.write("rare", found)
    assert len(rare.table().splitlines()) == 11


def test_drawn_environments_are_compared_draw_by_draw_and_axis_by_axis(
    benchmark, monkeypatch, results
):
    drawn, tables = benchmark("drawn"), benchmark("tables")
    grid = {"discount": (0.9, 1.0), "regularization": (1.0,), "bonus": (0.0, 2.0)}
    monkeypatch.setattr(drawn, "GRID", grid)
    monkeypatch.setattr(drawn, "HORIZON", 60)
    monkeypatch.setattr(drawn, "FEWEST", 1)
    tables.write("drawn-settings", list(drawn.chosen_lines(range(2), range(3))))
    chosen = drawn.settings("drawn-settings")
    world = drawn.random_environment(1, horizon=60)
    regrets = {
        (gamma, bonus): simulate(
            drawn.fixed(world, {"discount": gamma, "regularization": 1.0, "bonus": bonus}),
            world,
            range(3),
        ).total.mean()
        for gamma in (0.9, 1.0)
        for bonus in (0.0, 2.0)
    }
    assert (chosen[1]["discount"], chosen[1]["bonus"]) == min(regrets, key=regrets.get)
    found = list(drawn.lines(chosen, range(4, 6)))
    ratios = {line["draw"]: line["ratio"] for line in found}
    assert ratios["at rest"] == ratios["all"] == pytest.approx(np.sqrt(ratios[0] * ratios[1]))
    worst = max(ratios["at rest"], ratios["fixed arms"], ratios["fresh arms"])
    assert drawn.figures(found) == {"all": ratios["all"], "worst axis": worst}
    tables.write("drawn", found)
    assert len(drawn.axes_table().splitlines()) == 6
    assert not set(drawn.CHOOSE) & set(drawn.JUDGE)
    assert not set(drawn.DESIGN) & set(drawn.JUDGED)


def test_parts_are_changed_one_at_a_time_in_the_worst_draws(benchmark, monkeypatch, results):
    parts, tables = benchmark("drawn_parts"), benchmark("tables")
    monkeypatch.setattr(parts, "HORIZON", 60)
    monkeypatch.setattr(parts, "DESIGN", range(1000, 1002))
    judged = {1: 1.2, 2: 0.9, 3: 1.5}
    tables.write(
        "drawn",
        [{"draw": k, "setting": "any", "ratio": v} for k, v in judged.items()]
        + [{"draw": "all", "setting": "", "ratio": 2.0}],
    )
    chosen = {"discount": 0.95, "regularization": 1.0, "bonus": 1.0}
    tables.write("drawn-settings", [{"draw": k, **chosen} for k in judged])
    assert parts.worst_draws() == [3, 1]
    found = list(parts.lines(parts.worst_draws(), range(2), range(2)))
    here = {(x["changed"], x["where"]): x["ratio"] for x in found}
    assert here[parts.AS_IT_IS, parts.ELSEWHERE] == 1.0
    assert len(here) == len(found) == 2 * (len(parts.CHANGES) + 1) + len(parts.CHANGES)
    alone = parts.variants(AutoDOMD(problem=Problem(dim=2, radius=1.0)), chosen)[parts.ALONE]
    assert (alone.discounts, alone.regularizations, alone.paces) == ((0.95,), (1.0,), ())
    tables.write("drawn-parts", found)
    rows = parts.table().splitlines()
    assert len(rows) == 2 + len(parts.CHANGES) + 1
    assert "draw 3, over the best fixed setting" in rows[0]


def test_a_run_is_locked_in_by_its_last_rounds(benchmark, monkeypatch, results):
    lockin, tables = benchmark("lockin"), benchmark("tables")
    monkeypatch.setattr(lockin, "TOGETHER", 2)
    monkeypatch.setattr(lockin, "LAST", 50)
    world = Stationary(horizon=80, arms=FixedArms(20))
    policy = lockin.policies(world)[lockin.HERO]
    last, total = lockin.losses(policy, world, range(5))
    run = simulate(policy, world, range(5))
    np.testing.assert_array_equal(last, run.regret[:, 30:].mean(axis=1))
    np.testing.assert_array_equal(total, run.total)
    found = list(lockin.lines(range(3), 80))
    assert {line["policy"] for line in found} == set(lockin.policies(world))
    assert all(line["locked"] <= 3 for line in found)
    tables.write("lockin", found)
    assert "of 3 |" in lockin.table()


def test_half_lives_are_chosen_and_judged_on_other_seeds(benchmark):
    calendars = benchmark("calendars")
    assert not set(calendars.CHOOSE) & set(calendars.JUDGE)
    world = Stationary(horizon=200)
    parts = calendars.totals(calendars.best_fixed(world, range(1))[0], world, range(3))
    assert parts.shape == (3,)
    rest = {"world": "at rest", "auto": 107.0, "glbomd": 100.0, "ratio": 1.3}
    turns = {"world": "turns", "auto": 1.0, "glbomd": 9.0, "ratio": 1.06}
    assert calendars.missed([rest, turns]) == ["at rest: 1.07", "turns: 1.06"]
