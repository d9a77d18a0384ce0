"""The frozen suite: what it is, what a card holds, and how cards are compared."""

import hashlib
import json
import os
import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
from scipy import stats

import tiny
from driftbandit import GLBOMD, Stream, Uniform, datasets, random_environment, simulate
from driftbandit.lab import Engine, read_study
from driftbandit.lab.report import scorecards
from driftbandit.lab.run import suite as suites
from driftbandit.policies.catalogue import CATALOGUE

FROZEN = {
    "suite-1": "741d4d6ca1c7fc6d",
    "suite-2": "0d4b3ec46edbf090",
    "suite-3": "a25658045522c759",
}
TINY = """name = "tiny"
horizon = 40
seeds = 3
first_seed = 7
points = 2

[[environments]]
type = "Stationary"
label = "rest"

[[environments]]
type = "Circle"
label = "drift"

[reference]
rest = 8.0
drift = 4.0
"""
STREAMS = """name = "tiny"
horizon = 40
seeds = 3
first_seed = 7
points = 2

[[environments]]
type = "Stream"
start = 500
horizon = 30
order = ["time", "shuffled"]
"""


def driftbandit(*args, cwd):
    command = [sys.executable, "-m", "driftbandit", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def card(suite="tiny", **policies):
    """A card of two worlds, the second of which drifts."""
    worlds = {
        "rest": {"reference": 10.0, "drifts": False},
        "drift": {"reference": 20.0, "drifts": True},
    }
    played = {
        name: {
            world: {"mean": float(np.mean(r)), "us_per_round": 1.0, "regret": r}
            for world, r in found.items()
        }
        for name, found in policies.items()
    }
    head = {"format": 1, "suite": suite, "hash": "x", "seeds": [0, 1, 2]}
    return head | {"worlds": worlds, "policies": played}


A = {"rest": [1.0, 2.0, 3.0], "drift": [10.0, 12.0, 14.0]}
B = {"rest": [2.0, 2.5, 4.5], "drift": [9.0, 15.0, 21.0]}


@pytest.mark.parametrize("name", FROZEN)
def test_suites_are_frozen(name):
    """A score on a suite must mean the same for ever: change nothing, make another suite."""
    text = (resources.files("driftbandit.lab") / "suites" / f"{name}.toml").read_text()
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FROZEN[name]
    assert suites.read_suite(name).hash == FROZEN[name]
    assert suites.suites() == list(FROZEN)


def test_suite_3_is_what_its_generator_draws():
    study, _ = suites.read_suite("suite-3").study([{"type": "Uniform"}], [])
    for draw, (label, world, _) in enumerate(study.worlds()):
        drawn = random_environment(draw, horizon=3000)
        assert world == drawn
        assert label == f"draw {draw}: {', '.join(drawn.axes)}"
    assert draw == 39


def test_suite_2_adds_streams_to_suite_1():
    """The same simulated worlds, seeds and references, and each stream in both orders."""
    entry = {"type": "Uniform"}
    one, two = (suites.read_suite(name) for name in ("suite-1", "suite-2"))
    (first, _), (second, _) = (suite.study([entry], []) for suite in (one, two))
    facts = [{label: world for label, world, _ in study.worlds()} for study in (first, second)]
    added = {label: world for label, world in facts[1].items() if label not in facts[0]}
    assert {label: facts[1][label] for label in facts[0]} == facts[0]
    assert {label: two.reference[label] for label in facts[0]} == one.reference
    assert set(two.reference) == set(facts[1])
    assert (first.seeds, first.first_seed) == (second.seeds, second.first_seed)
    assert {world.data for world in added.values()} == set(datasets.names())
    for world in added.values():
        assert (world.drop, world.horizon, world.window) == (0.1, 9000, 10_000)
        assert len(world.checksum) == 16
        assert f"{world.data}, {world.order}" in added


def test_missing_data_are_said_before_anything_is_played(tmp_path, monkeypatch):
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ValueError, match="or set DRIFTBANDIT_DATA to a folder that holds the file"):
        suites.run_suite(suites.read_suite("suite-2"), ["Uniform"], tmp_path / "out")
    assert not list(tmp_path.glob("out/cells/*"))
    assert not (tmp_path / "out" / "suite-2.json").exists()


@pytest.mark.skipif("DRIFTBANDIT_DATA" not in os.environ, reason="needs the data of the streams")
def test_playing_streams_at_random_scores_one():
    """The frozen references are what `Uniform` still costs, so the streams are what they were."""
    suite = suites.read_suite("suite-2")
    for label, world, _ in suite.study([{"type": "Uniform"}], [])[0].worlds():
        if isinstance(world, Stream):
            run = simulate(Uniform(problem=world.problem), world, range(90000, 90010))
            assert run.total.mean() == pytest.approx(suite.reference[label], abs=0.06)


def test_streams_have_scores_of_their_own(tmp_path, monkeypatch):
    """Rivals that must know a radius have none there, and no place."""
    tiny.write(tmp_path)
    monkeypatch.setenv("DRIFTBANDIT_DATA", str(tmp_path))
    text = STREAMS + TINY[TINY.index("\n[[environments]]") :]
    suite = suites.parse_suite(text + '"elec2, time" = 20.0\n"elec2, shuffled" = 40.0\n')
    found = suites.run_suite(suite, ["GLBOMD"], tmp_path / "out", Engine(workers=1))
    by_kind = scorecards.groups(found)
    assert by_kind["streams in time order"] == {"elec2, time": 20.0}
    assert by_kind["streams shuffled"] == {"elec2, shuffled": 40.0}
    assert list(by_kind["all"]) == ["elec2, time", "elec2, shuffled", "rest", "drift"]
    plain = scorecards.scores(found, "GLB-OMD (practical)")
    world = Stream(start=500, horizon=30, order="shuffled")
    run = simulate(GLBOMD(problem=world.problem), world, (7, 8, 9))
    assert plain["streams shuffled"].value == pytest.approx(run.total.mean() / 40.0, abs=1e-4)
    theory = scorecards.scores(found, "GLB-OMD")
    assert theory["all"] is None is theory["streams in time order"]
    assert theory["drift"] is not None
    assert [row[0] for row in scorecards.ranking(found)] == ["GLB-OMD (practical)", "GLB-OMD"]


def test_playing_at_random_scores_one(tmp_path):
    """The frozen references are what `Uniform` still costs, so the worlds are what they were."""
    done = driftbandit("suite", "Uniform", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = scorecards.read_card(tmp_path / "out" / "suite-1.json")
    for world, facts in found["worlds"].items():
        played = found["policies"]["Uniform"][world]
        assert played["mean"] == pytest.approx(facts["reference"], abs=0.06)
        assert played["recipe"]["type"] == "Uniform"
    assert scorecards.scores(found, "Uniform")["all"].value == pytest.approx(1.0, abs=1e-3)
    assert found["made_by"]["driftbandit"]
    assert (tmp_path / "out" / "suite-1.json").stat().st_size < 20_000
    same = driftbandit("compare", "out/suite-1.json", "out/suite-1.json", cwd=tmp_path)
    assert "1.000 [1.000, 1.000]" in same.stdout
    assert "paper flip, S = 1" in same.stdout


def test_a_card_holds_the_regrets_of_the_study(tmp_path):
    from driftbandit import DOMD, Circle

    suite, engine = suites.parse_suite(TINY), Engine(workers=1)
    found = suites.run_suite(suite, ["DOMD", "DGLUCB"], tmp_path, engine)
    world = Circle(horizon=40)
    run = simulate(DOMD(problem=world.problem), world, (7, 8, 9))
    played = found["policies"]["DOMD-GLB (practical)"]["drift"]
    np.testing.assert_allclose(played["regret"], run.cumulative[:, -1], atol=1e-3)
    assert played["recipe"]["step"] == 2.0
    assert found == scorecards.read_card(tmp_path / "tiny.json")
    partial = scorecards.scores(found, "D-GLUCB")
    assert partial["all"] is None is partial["drift"]
    assert partial["jumps or rest"] is not None
    assert [row[0] for row in scorecards.ranking(found)][-1] == "D-GLUCB"
    assert set(found["policies"]) == {"DOMD-GLB (practical)", "DOMD-GLB", "D-GLUCB"}
    assert set(suites.run_suite(suite, ["DOMD-GLB (practical)"], tmp_path)["policies"]) == {
        "DOMD-GLB (practical)"
    }


def test_the_leaderboard_has_every_feasible_policy():
    entries, _ = suites.contenders(["all"])
    shipped = {entry.policy.__name__ for entry in CATALOGUE} - {"Oracle"}
    assert {entry["type"] for entry in entries} == shipped


def test_contenders_by_class_label_and_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[[policies]]\ntype = "DOMD"\nhalf_life = 50.0\nlabel = "mine"\n')
    entries, plugins = suites.contenders(["AutoDOMD", "DOMD", "AutoDOMD", str(file), "Oracle"])
    assert [e.get("label", e["type"]) for e in entries] == [
        *("AutoDOMD", "DOMD-GLB (practical)", "DOMD", "mine", "Oracle")
    ]
    assert plugins == []
    study, text = suites.parse_suite(TINY).study(entries, plugins)
    assert 'label = "mine"' in text
    assert len(study.policies) == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horizon = 9\n[[policies]]\ntype = 'DOMD'", "worlds and seeds are the suite's; it holds"),
        ("", "it holds nothing"),
        ("[[policies]]\ntype = 'DOMD'\nseeds = 2", "plays all its seeds as they come"),
        ("[[policies]\n", "mine.toml: "),
    ],
)
def test_a_file_that_bends_the_rules_is_refused(tmp_path, text, message):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        suites.contenders([str(tmp_path / "mine.toml")])


def test_theory_in_a_stream_is_told_what_to_do():
    entry = {"type": "DOMD", "half_life": 50.0}
    with pytest.raises(
        ValueError, match=r'needs radius.*weather, time tells.*only = \["Simulated"'
    ):
        suites.read_suite("suite-2").study([entry], [])
    for more in ({"tuning": "practical"}, {"only": ["Simulated"]}):
        assert suites.read_suite("suite-2").study([entry | more], [])


def test_options_of_every_kind_survive_as_toml():
    entry = {
        "type": "MASTER",
        "label": 'a "b" \\ ü',
        "base": {"type": "Gaussian", "variance": 1e-7, "bound": 2.0},
        "list": [0.5, 1, True, "x"],
    }
    assert suites.tomllib.loads(suites.table_of(entry))["policies"] == [entry]


def test_an_unknown_suite_or_policy_is_one_line(tmp_path):
    done = driftbandit("suite", "--suite", "suite-0", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("driftbandit: no suite 'suite-0': there are suite-1")
    done = driftbandit("suite", "AutoDOM", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown policy 'AutoDOM': did you mean 'AutoDOMD'?" in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_score_is_the_geometric_mean_of_ratios():
    found = scorecards.scores(card(A=A), "A")
    assert found["all"].value == pytest.approx(np.sqrt(2.0 / 10.0 * 12.0 / 20.0))
    assert found["drift"].value == pytest.approx(12.0 / 20.0)
    assert found["jumps or rest"].value == pytest.approx(0.2)
    assert all(f.low < f.value < f.high for f in found.values())


def test_one_seed_or_equal_seeds_have_no_spread():
    flat = scorecards.score({"w": [3.0, 3.0]}, {"w": 6.0})
    np.testing.assert_allclose(flat, (0.5, 0.5, 0.5))
    assert np.isnan(scorecards.difference([1.0], [2.0])[1:]).all()
    np.testing.assert_array_equal(scorecards.score({"w": [0.0, 0.0]}, {"w": 6.0}), 0.0)


def test_the_interval_is_that_of_the_bootstrap_of_whole_seeds():
    rng = np.random.default_rng(5)
    x = {w: rng.gamma(4.0, size=40) for w in "abc"}
    found = scorecards.score(x, dict.fromkeys("abc", 2.0))
    data, rng = np.array(list(x.values())), np.random.default_rng(1)
    drawn = [data[:, rng.integers(40, size=40)].mean(axis=1) / 2 for _ in range(4000)]
    low, high = np.quantile(np.exp(np.log(drawn).mean(axis=1)), [0.025, 0.975])
    assert found.low == pytest.approx(low, rel=0.02)
    assert found.high == pytest.approx(high, rel=0.02)


def test_ratios_turn_over_and_pair_seeds():
    there, back = scorecards.ratio(A, B), scorecards.ratio(B, A)
    np.testing.assert_allclose([there.low, there.value], [1 / back.high, 1 / back.value])
    twice = {world: [2.0 * v for v in r] for world, r in A.items()}
    np.testing.assert_allclose(scorecards.ratio(twice, A), 2.0)  # no spread: the same luck


def test_differences_are_students():
    a, b = np.array(A["rest"]), np.array(B["rest"])
    expected = stats.ttest_rel(a, b).confidence_interval(0.95)
    found = scorecards.difference(a, b)
    np.testing.assert_allclose(found, (np.mean(a - b), *expected))


def test_cards_are_compared_by_name_or_all_with_all():
    (same,) = scorecards.compare(card(A=A), card(A=B, C=B))
    assert (same.first, same.second) == ("A", "A")
    assert same.worlds["rest"][:2] == (2.0, 3.0)
    assert same.overall == scorecards.ratio(A, B)
    pairs = scorecards.compare(card(A=A), card(B=B, C=A))
    assert [(c.first, c.second) for c in pairs] == [("A", "B"), ("A", "C")]
    half = {"rest": B["rest"]}
    (part,) = scorecards.compare(card(A=A), card(half=half))
    assert list(part.worlds) == ["rest"]
    assert part.overall.value == pytest.approx(2.0 / 3.0)


def test_cards_of_other_suites_are_not_compared():
    with pytest.raises(ValueError, match=r"tiny \(x\) and on other \(x\) cannot be compared"):
        scorecards.compare(card(A=A), card("other", A=A))
    with pytest.raises(ValueError, match="cannot be compared: play both on the same suite"):
        scorecards.compare(card(A=A), card(A=A) | {"hash": "y"})


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', json.dumps(card(A={"rest": [1.0]})), "\xff"]
)
def test_what_is_no_card_is_named(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"a\.json is no card of a suite"):
        scorecards.read_card(path)


@pytest.mark.parametrize("name", ["suite-1", "suite-2", "suite-3"])
def test_every_policy_of_the_catalogue_is_on_the_leaderboard_with_the_papers_readings(name):
    study, _ = suites.read_suite(name).study(*suites.contenders(["all"]))
    kinds = {entry.type for entry in study.policies}
    assert kinds == {entry.policy.__name__ for entry in CATALOGUE} - {"Oracle"}
    figure = {entry.type: entry.model_extra for entry in read_study("paper-figure")[0].policies}
    for entry in (*study.policies, *read_study("many-worlds")[0].policies):
        if entry.type in ("BVDGLMUCB", "SCDGLUCB", "MASTER"):
            assert entry.model_extra["reading"] == figure[entry.type]["reading"]


def test_many_worlds_has_every_policy_on_twenty_seeds():
    study = read_study("many-worlds")[0]
    kinds = {entry.type for entry in study.policies}
    assert kinds == {entry.policy.__name__ for entry in CATALOGUE} - {"Oracle", "Greedy"}
    assert all((entry.seeds or study.seeds) >= 20 for entry in study.policies)
