"""evaluate: values against naive twins and known truth, words, reports, commands."""

import json
import math
import re

import numpy as np
import polars as pl
import pytest

from browsing import browser, needs_chromium
from driftbandit import (
    DOMD,
    MASTER,
    Always,
    AutoDOMD,
    Bandit,
    Default,
    Log,
    Logged,
    Recipe,
    Reward,
    Uniform,
    evaluate,
)
from driftbandit.estimators import ope, shrinkage, windows
from driftbandit.loop.exploration import Floor, Thompson
from prices import ARMS, FEATURES

__all__ = ["browser"]  # a fixture

TRUTH = {"a": 0.2, "b": 0.5, "c": 0.3}
DAY = 86400.0


def rows(n=300, seed=0, truth=TRUTH, names="abc", apart=3600.0):
    """Rows of a live policy that plays one arm at a time and explores with three in ten."""
    rng, out = np.random.default_rng(seed), []
    for t in range(n):
        h = np.full(3, 0.1)
        h[(t // 50) % 3] += 0.7
        k = int(rng.choice(3, p=h / h.sum()))
        context = {"age": int(rng.integers(18, 90)), "country": str(rng.choice(["NL", "FR"]))}
        out.append(
            {
                "context": json.dumps(context),
                "arms": json.dumps({name: ARMS[name] for name in names}),
                "action": names[k],
                "probability": float(h[k]),
                "probabilities": h.tolist(),
                "reward": float(rng.random() < truth[names[k]]),
                "time": 1.7e9 + apart * t,
            }
        )
    return out


def read(given, **options):
    return Log.read(
        pl.DataFrame(given), **({"features": FEATURES, "reward": Reward(0, 1)} | options)
    )


def naive(given, candidate, wait=0.0, arm=None):
    """IPS, DM and DR of a learner (or of an arm, with the learner as the model), row by row."""
    bandit, due, out = Bandit(candidate), [], []
    for row in given:
        while due and due[0][2] + wait <= (row["time"] if wait else math.inf):
            x, r, _ = due.pop(0)
            bandit.update(x, r)
        X = FEATURES.encode(json.loads(row["context"]), list(ARMS.values()))
        q = 1.0 / (1.0 + np.exp(-X @ bandit.theta))
        k, played = "abc".index(row["action"]), bandit.choose(X) if arm is None else arm
        w = (k == played) / row["probability"]
        out.append((w * row["reward"], q[played], q[played] + w * (row["reward"] - q[k])))
        due.append((X[k], row["reward"], row["time"]))
    return np.array(out)


@pytest.mark.parametrize("wait", [0.0, 10 * 3600.0])
def test_values_equal_a_naive_twin_that_is_asked_before_it_is_told(wait):
    given, reward = rows(), Reward(0, 1, wait=wait)
    found = evaluate(read(given, reward=reward), {"new": DOMD, "b": Always("b")})
    policy = DOMD(problem=FEATURES.problem(reward))
    for name, twin in {
        "new": naive(given, policy, wait),
        "b": naive(given, policy, wait, arm=1),
    }.items():
        for kind, column in zip(("ips", "dm", "dr"), twin.T):
            estimate = found.values[name].estimates[kind]
            assert estimate.value == pytest.approx(column.mean(), rel=1e-12)
    gap = naive(given, policy, wait)[:, 2] - naive(given, policy, wait, arm=1)[:, 2]
    (difference,) = found.differences
    assert difference.estimate.value == pytest.approx(gap.mean(), rel=1e-9)
    half = 1.959963984540054 * gap.std(ddof=1) / math.sqrt(len(gap))
    assert difference.estimate.high - difference.estimate.value >= half  # see test_estimators


def test_rules_give_weights_to_all_arms():
    given = rows()
    greedy = naive(given, DOMD(problem=FEATURES.problem(Reward(0, 1))))[:, 0].mean()
    chance = np.mean([r["reward"] / (3.0 * r["probability"]) for r in given])
    found = evaluate(read(given), {"new": DOMD}, exploration=Floor(0.4))
    assert found.values["new"].estimates["ips"].value == pytest.approx(0.6 * greedy + 0.4 * chance)
    found = evaluate(read(given), {"new": DOMD}, exploration=Thompson(draws=7), seed=1)
    assert found.values["new"].effective > 20


def test_logged_is_what_was_earned_and_uniform_is_chance():
    given = rows()
    found = evaluate(read(given), {"live": Logged(), "chance": Uniform})
    live, chance = found.values["live"], found.values["chance"]
    mean = np.mean([row["reward"] for row in given])
    assert live.estimates["ips"].value == pytest.approx(mean)
    assert live.effective == pytest.approx(300)
    assert chance.estimates["ips"].value == pytest.approx(
        np.mean([r["reward"] / (3.0 * r["probability"]) for r in given])
    )
    assert found.found.model == "mean"  # nobody learns


def test_the_model_may_be_anybodys():
    log, candidates = read(rows()), {"new": DOMD, "auto": AutoDOMD, "b": Always("b")}
    by_name = evaluate(log, candidates, model="auto")
    by_class = evaluate(log, {"b": Always("b")}, model=AutoDOMD)
    assert by_name.values["b"].estimates["dr"] == by_class.values["b"].estimates["dr"]
    assert by_name.values["b"].sequence == by_class.values["b"].sequence
    assert by_class.found.model == "AutoDOMD"
    for model in ("mean", "new"):
        ips = evaluate(log, candidates, model=model).values["b"].estimates["ips"]
        assert ips == by_name.values["b"].estimates["ips"]


def test_units_change_nothing_but_the_unit():
    given = rows(600)
    euros = [row | {"reward": 50.0 * row["reward"] - 10.0} for row in given]
    costs = [row | {"reward": 1.0 - row["reward"]} for row in given]
    candidates = {"new": DOMD, "b": Always("b")}
    one = evaluate(read(given), candidates)
    two = evaluate(read(euros, reward=Reward(-10, 40)), candidates)
    low = evaluate(read(costs, reward=Reward(0, 1, goal="min")), candidates)
    for name, worth in one.values.items():
        for kind, (value, *ends) in worth.estimates.items():
            raw, *raw_ends = two.values[name].estimates[kind]
            assert raw == pytest.approx(50.0 * value - 10.0)
            assert raw_ends == pytest.approx([50.0 * x - 10.0 for x in ends], nan_ok=True)
            cost = low.values[name].estimates[kind]
            assert cost.value == pytest.approx(1.0 - value)
            assert [cost.high, cost.low] == pytest.approx([1.0 - x for x in ends], nan_ok=True)
        assert two.values[name].sequence.low == pytest.approx(50.0 * worth.sequence.low - 10.0)
        assert low.values[name].sequence.low == pytest.approx(1.0 - worth.sequence.high)
    signs = [found.differences[0].better for found in (one, two, low)]
    assert len(set(signs)) == 1
    assert low.differences[0].estimate.value == pytest.approx(-one.differences[0].estimate.value)


def test_the_order_of_arms_does_not_matter():
    given = rows(200)
    turned = [
        row
        | {
            "arms": json.dumps({name: ARMS[name] for name in "cab"}),
            "probabilities": [row["probabilities"]["abc".index(name)] for name in "cab"],
        }
        for row in given
    ]
    candidates = {"b": Always("b"), "chance": Uniform(), "live": Logged()}
    one, two = (evaluate(read(each), candidates) for each in (given, turned))
    for name in candidates:
        assert one.values[name].estimates["dr"] == pytest.approx(two.values[name].estimates["dr"])
        assert one.values[name].sequence == pytest.approx(two.values[name].sequence)


def test_sums_do_not_depend_on_windows():
    log = read(rows())
    candidates = {"b": Always("b"), "chance": Uniform()}
    day, auto, week = (evaluate(log, candidates, window=w) for w in ("1d", None, "7d"))
    assert [len(found.starts) for found in (day, week)] == [14, 3]
    assert found_sums(day) == pytest.approx(found_sums(auto))
    assert found_sums(day) == pytest.approx(found_sums(week))
    first = [r for r in rows() if r["time"] // DAY == 1.7e9 // DAY]
    ips = sum((r["action"] == "b") * r["reward"] / r["probability"] for r in first)
    assert day.found.values["b"][0, ope.SUMS.index("wR")] == pytest.approx(ips)
    assert day.found.values["b"][0, 0] == len(first)
    running, _ = day.curve("b", running=True)
    assert running[-1] == pytest.approx(day.values["b"].estimates["dr"].value)
    gaps, gap_band = day.gap_curve("b", "chance", running=True)
    assert gaps[-1] == pytest.approx(day.differences[0].estimate.value)
    assert gap_band.low[-1] == pytest.approx(day.differences[0].sequence.low)


def found_sums(found):
    return found.found.values["b"].sum(axis=0)


def test_windows_of_a_log_without_time(monkeypatch):
    given = [{k: v for k, v in row.items() if k != "time"} for row in rows()]
    found = evaluate(read(given), {"b": Always("b")}, window=100)
    assert found.starts.tolist() == [0.0, 100.0, 200.0]
    assert "row 101" in found.markdown()
    monkeypatch.setattr(windows, "FEW", 4)
    assert len(evaluate(read(given), {"b": Always("b")}).starts) == 3  # of 128 rows
    monkeypatch.setattr(windows, "MOST", 5)
    with pytest.raises(ValueError, match="longer window"):
        evaluate(read(given), {"b": Always("b")}, window=10)


def test_verdicts_say_who_is_better_and_who_cannot_be_told():
    found = evaluate(read(rows(6000)), {"b": Always("b"), "a": Always("a"), "A": Always("a")})
    better, _, equal = found.verdicts
    assert better.startswith("b is better than a with 95 % confidence: by 0.")
    assert equal.startswith("Cannot say whether a or A is better")
    assert "no difference is in sight" in equal
    assert [gap.better for gap in found.differences] == [1, 1, 0]
    worse = evaluate(read(rows(6000)), {"a": Always("a"), "b": Always("b")}, over="b")
    assert worse.verdict.startswith("b is better than a")
    assert worse.differences[0].better == -1
    few = evaluate(read(rows(300)), {"b": Always("b"), "a": Always("a")})
    needed = re.search(r"about ([\d,]+) more rows", few.verdict)
    assert 100 < int(needed[1].replace(",", "")) < 20_000
    alone = evaluate(read(rows(300)), {"b": Always("b")})
    assert alone.verdict.startswith("b is worth 0.")


def test_a_value_that_turns_round_is_told_from_the_latest_windows():
    early = rows(5000, apart=600.0)
    turned = {"a": 0.8, "b": 0.2, "c": 0.3}
    late = rows(3000, seed=1, truth=turned, apart=600.0)
    for row in late:
        row["time"] += 5000 * 600.0
    found = evaluate(read(early + late), {"b": Always("b"), "a": Always("a")}, window="5d")
    (gap,) = found.differences
    assert gap.recently == -1
    assert gap.recent.high < 0.0
    middle, band = found.gap_curve("b", "a")
    assert middle[0] > 0.1
    assert middle[-2] < -0.1
    truth = np.array([0.3] * 5000 + [-0.6] * 3000)
    running = np.cumsum(truth) / np.arange(1, 8001)
    ends = np.cumsum(found.found.differences["b", "a"][:, 0]).astype(int) - 1
    _, band = found.gap_curve("b", "a", running=True)
    assert ((band.low <= running[ends]) & (running[ends] <= band.high)).all()


def test_doubts_are_said():
    wrong = [row | {"probabilities": [1 / 3] * 3, "probability": 1 / 3} for row in rows(600)]
    for k, row in enumerate(wrong):
        row["action"] = "a" if k % 2 else "b"
    found = evaluate(read(wrong), {"b": Always("b")})
    assert any("do not fit what was played" in note for note in found.notes)
    some = [
        row
        | {
            "arms": json.dumps(
                {"z" if name == "c" and k < 9 else name: ARMS[name] for name in ARMS}
            )
        }
        for k, row in enumerate(rows(600))
    ]
    some[:9] = [row | {"action": row["action"].replace("c", "z")} for row in some[:9]]
    right = evaluate(read(some), {"new": DOMD, "z": Always("z")})
    assert right.found.check.p > 0.001
    assert any("policy trained on this log" in note for note in right.notes)
    assert any("In 591 rows z was not on offer" in note for note in right.notes)
    only = [row | {"probabilities": None} for row in rows(600)]
    found = evaluate(read(only), {"b": Always("b")})
    assert any("Only the played arm's probability" in note for note in found.notes)
    told = evaluate(read(only, least=0.1), {"b": Always("b")}).notes
    assert not any("Only the played" in note for note in told)
    sure = [row | {"probabilities": [1.0, 0.0, 0.0], "probability": 1.0} for row in rows(100)]
    for row in sure:
        row["action"] = "a"
    found = evaluate(read(sure), {"b": Always("b")})
    assert any("100.0% of what b would play had probability 0" in note for note in found.notes)
    assert found.values["b"].sequence == (0.0, 1.0)


@pytest.mark.parametrize(
    ("candidates", "options", "match"),
    [
        ({}, {}, "candidates must be a mapping"),
        (DOMD, {}, "candidates must be a mapping"),
        ({"x": "DOMD"}, {}, "candidate 'x' must be a policy"),
        ({"x": Always("a")}, {"over": "y"}, "over must be one of x"),
        ({"x": Always("a")}, {"model": "y"}, "model must be 'mean'"),
        ({"x": Always("a")}, {"model": MASTER}, "problem=log.problem|predicts no rewards"),
        ({"x": Always("a")}, {"level": 1.0}, "level"),
        ({"x": Always("a")}, {"clip": 0.0}, "clip"),
        ({"x": Always("a")}, {"window": "soon"}, "window must be"),
        ({"x": DOMD}, {"half_life": "auto"}, "half_life"),
        ({"x": Always("B")}, {}, "candidate 'x': no row of the log offers an arm 'B': there is"),
        ({"x": Default()}, {}, "candidate 'x': no row of the log names a default"),
    ],
)
def test_wrong_input_is_one_line_with_a_remedy(candidates, options, match):
    with pytest.raises(ValueError, match=match):
        evaluate(read(rows(20)), candidates, **options)


def test_other_wrong_input():
    with pytest.raises(ValueError, match=r"log must be Log\.read"):
        evaluate(pl.DataFrame(rows(5)), {"x": Uniform()})
    with pytest.raises(ValueError, match="arm must be the name"):
        Always(["a"])
    with pytest.raises(ValueError, match="the probabilities of all arms"):
        evaluate(read([r | {"probabilities": None} for r in rows(20)]), {"x": Logged()})
    assert Recipe.from_dict(Always(3).to_dict()) == Always("3")
    assert evaluate(read(rows(1)), {"x": Uniform()}).rows == 1


def test_reports_hold_the_numbers_and_nothing_from_outside(tmp_path):
    nasty = "<script>alert(1)</script>|x"
    found = evaluate(read(rows()), {nasty: DOMD, "b": Always("b")}, window="1d")
    paths = found.write(tmp_path / "my report")
    data = json.loads(paths["json"].read_text(), parse_constant=pytest.fail)
    assert data["values"]["b"]["estimates"]["dr"]["value"] == pytest.approx(
        found.values["b"].estimates["dr"].value
    )
    assert data["values"]["b"]["estimates"]["dm"]["low"] is None
    assert data["log"]["used"] == 300
    assert len(data["windows"]["starts"]) == 14
    page = paths["html"].read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert not re.search(r"""(src|href)=["']?(http|//)""", page)
    assert "default-src 'none'" in page
    assert page.count("<figure>") == 3
    text = paths["md"].read_text()
    assert "\\|x" in text
    widths = {
        len(re.findall(r"(?<!\\)\|", line))
        for line in text.splitlines()
        if line.startswith("| b |")
    }
    assert widths == {11, 7}  # the cells of two tables: values and overlap
    assert found.verdict in repr(found)


@needs_chromium
def test_charts_show_every_value_and_follow_the_theme(tmp_path, browser):
    found = evaluate(read(rows()), {"b": Always("b"), "x": Uniform()}, window="1d")
    browser.get(found.write(tmp_path)["html"].as_uri())
    heights, colours, texts = browser.execute_script(
        "const svgs = [...document.querySelectorAll('.plots svg')];"
        "const dots = svgs.map(svg => [...svg.querySelectorAll('.dot')]);"
        "const colour = () => getComputedStyle(svgs[0].querySelector('text')).fill;"
        "const before = colour(); document.getElementById('theme').click();"
        "return [dots.map(own => own.map(dot => Number(dot.getAttribute('cy')))),"
        "[before, colour()], svgs.map(svg => svg.textContent)]"
    )
    windows = len(found.starts)
    assert [len(own) for own in heights] == [2 * windows, 2 * windows, windows]
    assert all(10 <= y <= 300 - 34 for own in heights for y in own)  # inside of the axes
    assert colours[0] != colours[1]
    assert all("2023-11-14" in text for text in texts)  # the first window's name
    inside = "[[-0.2, 0.1, 1.3], [5]].map(values => heights([{points: values.map(y => ({x: 0, y,"
    inside += " low: 0, high: 1}))}], 3))"
    assert browser.execute_script(f"return {inside}") == [[-0.2, 1.3], [0, 5]]
    assert browser.get_log("browser") == []


@needs_chromium
def test_ticks_are_round_numbers_inside(browser):
    for low, high in [(0.0, 1.0), (-0.013, 0.027), (95.0, 105.0)]:
        found = browser.execute_script(
            "return ticks(scale(false, arguments[0], [0, 1]))", (low, high)
        )
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)
        assert 4 <= len(found) <= 10
    found = browser.execute_script("return ticks(scale(false, [0, 1], [0, 1]))")
    assert found == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def test_the_commands(tmp_path, driftbandit):
    read(rows()).write(tmp_path / "my log.parquet")
    code, out, err = driftbandit("replay", "my log.parquet", "--policy", "DOMD", "--out", "b.npz")
    assert (code, err) == (0, "")
    assert "DOMD-GLB trained on 300 rows" in out
    assert Bandit.load(tmp_path / "b.npz").rounds == 300
    code, out, _ = driftbandit("replay", "my log.parquet", "--policy", "DOMD", "--rejection")
    assert re.match(r"\d+ of 300 rows accepted, mean reward 0\.", out)
    options = ("--policy", "DOMD", "--always", "b", "--over", "uniform", "--window", "1d")
    code, out, err = driftbandit("evaluate", "my log.parquet", *options)
    assert (code, err) == (0, "")
    assert "always b or uniform" in out or "always b is better than uniform" in out
    assert (tmp_path / "evaluation" / "evaluation.html").exists()


def test_columns_are_named_on_the_command_line(tmp_path, driftbandit):
    """Text columns of a stranger's file; a context that is not named is not lost in silence."""
    given = [r | {"clicked": r["reward"], **json.loads(r["context"])} for r in rows(200)]
    frame = pl.DataFrame(given).drop("reward", "context", "probabilities", "time")
    frame.write_csv(tmp_path / "log.csv")
    asked = ("evaluate", "log.csv", "--policy", "DOMD", "--column", "reward=clicked")
    code, out, _ = driftbandit(*asked, "--window", "50")
    assert (code, "The log has no context" in out) == (0, True)
    code, named, err = driftbandit(*asked, "--column", "context=age,country")
    assert (code, err, "no context" in named) == (0, "", False)
    values = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())["values"]
    columns = {"reward": "clicked", "context": ["age", "country"]}
    twin = evaluate(Log.read(tmp_path / "log.csv", columns), {"DOMD": DOMD})
    dr = twin.values["DOMD"].estimates["dr"].value
    assert values["DOMD"]["estimates"]["dr"]["value"] == pytest.approx(dr)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["evaluate", "log.parquet", "--column", "reward"], "--column must be ours=theirs"),
        (["evaluate", "log.parquet", "--column", "reward=,"], "--column must be ours=theirs"),
        (["evaluate", "log.parquet", "--column", "price=cost"], "a log has no column 'price'"),
        (["evaluate", "log.parquet", "--column", "reward=gain"], "there is no column 'gain'"),
        (["evaluate", "log.parquet", "--policy", "DOMDD"], "'DOMDD' is not a policy"),
        (["evaluate", "log.parquet", "--reward", "5"], "--reward must be two numbers"),
        (["evaluate", "nothing.csv"], "is not a file"),
        (
            ["replay", "log.parquet", "--rejection"],
            "name one, such as policy=AutoDOMD, or --policy",
        ),
        (["replay", "log.parquet", "--features", "nothing.json"], "nothing.json"),
        (["replay", "log.parquet", "--features", "log.parquet"], "no JSON of features"),
    ],
)
def test_wrong_commands_are_one_line(args, match, tmp_path, driftbandit):
    read(rows(20)).write(tmp_path / "log.parquet")
    code, out, err = driftbandit(*args)
    assert (code, out) == (2, "")
    assert match in err
    assert err.count("\n") == 1


def test_estimates_are_all_in_the_report():
    found = evaluate(read(rows(50)), {"b": Always("b")})
    kinds = {*ope.ESTIMATES, *shrinkage.FAMILIES}
    assert set(found.values["b"].estimates) == kinds
    shown = found.markdown()
    assert all(f" {kind} " in shown or f" {kind} [" in shown for kind in kinds)
