"""The report of a stored study, from numbers that can be worked out by hand; then in Chromium."""

import dataclasses
import json
import math
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from browsing import browser, needs_chromium
from driftbandit.lab.report.figures import WIDTHS, draw_regret, spread
from driftbandit.lab.report.page import aligned
from driftbandit.lab.report.report import names_of, write_report
from driftbandit.lab.report.summary import SMOOTHING, chosen, curves, final_regrets, finals
from driftbandit.lab.report.sweeps import grids, sweeps
from driftbandit.lab.report.tables import overview, panels, to_latex, to_markdown
from driftbandit.lab.run.cells import cells_of
from driftbandit.lab.run.store import RunStore
from driftbandit.lab.study.study_file import changed, parse_study
from driftbandit.pages.styles import FIXED, NAMES, looks
from driftbandit.policies.catalogue import CATALOGUE

__all__ = ["browser"]  # a fixture

EVIL = "GLB & <script>alert(1)</script> 50% $x_1$"
WORLDS = ["zebra", "apple | <b>"]
POLICIES = [EVIL, "DOMD-GLB", "Oracle"]
STUDY = f"""
name = "tiny"
title = "A <title> & more"
horizon = 50
seeds = 4
points = 50

[[environments]]
type = "Circle"
label = "{WORLDS[0]}"

[[environments]]
type = "SignFlip"
label = "{WORLDS[1]}"

[[policies]]
type = "GLBOMD"
label = "{EVIL}"

[[policies]]
type = "DOMD"

[[policies]]
type = "Oracle"
"""
T = np.arange(1, 51)
LEVEL = {EVIL: 3.0, "DOMD-GLB": 2.0, "Oracle": 0.5}
SLOPE = {EVIL: 0.4, "DOMD-GLB": 0.1, "Oracle": 0.0}
SPREAD = np.std([0, 1, 2, 3], ddof=1)
QUANTILE = 3.182446305284263  # Student's t, 3 degrees of freedom, 97.5 %


def frame(cell):
    """Regret t (level + slope * seed), cost 1 + t, and some numbers that are missing."""
    n, k = len(cell.seeds), len(T)
    seeds, t = np.repeat(cell.seeds, k), np.tile(T, n)
    policy = cell.policy_label
    level = LEVEL[policy] + (10.0 if cell.environment_label == WORLDS[1] else 0.0)
    known = policy != "Oracle"
    return pl.DataFrame(
        {
            "environment": [cell.environment_label] * (n * k),
            "policy": [policy] * (n * k),
            "seed": seeds.astype(np.int64),
            "round": t.astype(np.int64),
            "regret": t * (level + SLOPE[policy] * seeds),
            "reward": t * 0.5,
            "choose_us": np.ones(n * k),
            "update_us": t.astype(float),
            "error": t / 100.0 if known else np.full(n * k, np.nan),
            "ratio": np.array([0.5, 1.0, 1.5, np.nan])[seeds] if known else np.full(n * k, np.nan),
            "bytes": np.full(n * k, 64 if known else 8, dtype=np.int64),
        }
    )


def fill(store, block=2, text=STUDY):
    cells = cells_of(parse_study(STUDY, "tiny"), block)
    store.keep(text, cells)
    store.start({"engine": "by <hand>", "shared_cores": True})
    for cell in cells:
        store.add(cell, frame(cell))
    return store


def filled(folder, text, change=lambda rows: rows):
    """A store of a study's cells, its frames changed."""
    store, cells = RunStore(folder), cells_of(parse_study(text, "some"), 4)
    store.keep(text, cells)
    for cell in cells:
        store.add(cell, change(frame(cell)))
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(RunStore(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def report(store):
    return write_report(store.folder)


def line(table, world, policy):
    found = table.filter((pl.col("environment") == world) & (pl.col("policy") == policy))
    return found.row(0, named=True)


def test_finals_are_the_numbers_by_hand(store):
    table = finals(store)
    assert table.height == 6
    for world, extra in zip(WORLDS, (0.0, 10.0)):
        for policy in POLICIES:
            row = line(table, world, policy)
            assert (row["seeds"], row["horizon"]) == (4, 50)
            assert row["mean"] == pytest.approx(50 * (LEVEL[policy] + extra + 1.5 * SLOPE[policy]))
            assert row["deviation"] == pytest.approx(50 * SLOPE[policy] * SPREAD)
            assert (row["early_us"], row["late_us"]) == (9.0, 49.0)
    row = line(table, WORLDS[0], EVIL)
    assert (row["bytes"], row["error"], row["coverage"]) == (64, 0.5, pytest.approx(2 / 3))
    row = line(table, WORLDS[0], "Oracle")
    assert (row["bytes"], row["error"], row["coverage"]) == (8, None, None)


def test_differences_are_paired_by_seed(store):
    table = finals(store)
    row = line(table, WORLDS[0], EVIL)
    half = QUANTILE * 50 * 0.3 * SPREAD / math.sqrt(4)
    assert row["reference"] == "DOMD-GLB"
    assert row["difference"] == pytest.approx(50 * (1.0 + 0.3 * 1.5))
    assert row["low"] == pytest.approx(row["difference"] - half)
    assert row["high"] == pytest.approx(row["difference"] + half)
    assert line(table, WORLDS[0], "DOMD-GLB")["difference"] is None
    turned = line(finals(store, reference=EVIL), WORLDS[0], "DOMD-GLB")
    assert turned["difference"] == pytest.approx(-row["difference"])
    with pytest.raises(ValueError, match="no policy 'Nobody'"):
        finals(store, reference="Nobody")


def test_curves_are_means_at_thinned_rounds_in_the_order_of_the_study(store):
    whole, thin = curves(store), curves(store, points=7)
    assert whole.height == 6 * 50
    assert thin["environment"].unique(maintain_order=True).to_list() == WORLDS
    assert thin["policy"].unique(maintain_order=True).to_list() == POLICIES
    rounds = thin["round"].unique().sort().to_list()
    assert (len(rounds), rounds[0], rounds[-1]) == (7, 1, 50)
    row = line(whole.filter(pl.col("round") == 20), WORLDS[0], EVIL)
    assert row["regret"] == pytest.approx(20 * 3.6)
    assert row["deviation"] == pytest.approx(20 * 0.4 * SPREAD)
    assert (row["cost_us"], row["error"], row["bytes"]) == (21.0, pytest.approx(0.2), 64.0)
    assert row["half"] == pytest.approx(QUANTILE * 20 * 0.4 * SPREAD / 2)
    assert row["coverage"] == pytest.approx(2 / 3)
    assert line(whole, WORLDS[0], "Oracle")["coverage"] is None


def test_other_blocks_and_cells_of_an_earlier_text_change_nothing(store, tmp_path):
    other = fill(fill(RunStore(tmp_path)), block=3)
    for cell in cells_of(parse_study(STUDY.replace("= 50", "= 40"), "old"), 4):
        other.add(cell, frame(cell).with_columns(pl.col("regret") * 7))
    assert len(list(other.cells.glob("*.parquet"))) > 2 * 6
    for mine, theirs in ((finals(store), finals(other)), (curves(store), curves(other))):
        assert mine.drop(pl.selectors.float()).equals(theirs.drop(pl.selectors.float()))
        for name in mine.select(pl.selectors.float()).columns:
            np.testing.assert_allclose(mine[name].to_numpy(), theirs[name].to_numpy())


def test_a_run_with_changed_numbers_is_what_is_shown(tmp_path):
    store = fill(RunStore(tmp_path))
    text = changed(STUDY, horizon=60)
    cells = cells_of(parse_study(text, "tiny"), 4)
    store.keep(text, cells)
    for cell in cells:
        store.add(cell, frame(cell).with_columns(pl.col("round") + 10, pl.col("regret") * 2))
    row = line(finals(store), WORLDS[0], "DOMD-GLB")
    assert (row["horizon"], row["mean"]) == (60, pytest.approx(2 * 107.5))


def test_cells_that_the_study_no_longer_has_are_not_shown(tmp_path):
    mixed = fill(RunStore(tmp_path))
    cell = cells_of(parse_study(STUDY, "tiny"), 4)[0]
    mixed.add(dataclasses.replace(cell, policy_label="older", code="older"), frame(cell))
    assert finals(mixed)["policy"].unique().sort().to_list() == POLICIES


def test_one_seed_has_no_deviation_and_no_interval(tmp_path):
    single = RunStore(tmp_path)
    text = STUDY.replace("seeds = 4", "seeds = 1")
    cells = cells_of(parse_study(text, "single"), 1)
    single.keep(text, cells)
    for cell in cells:
        single.add(cell, frame(cell))
    row = line(finals(single), WORLDS[0], EVIL)
    assert math.isnan(row["deviation"])
    assert row["low"] is None
    assert row["difference"] == pytest.approx(50.0)
    assert write_report(tmp_path)["html"].exists()


def test_a_label_with_two_meanings_is_refused(tmp_path):
    doubtful = RunStore(tmp_path)
    cell = cells_of(parse_study(STUDY, "tiny"), 4)[0]
    other = dataclasses.replace(cell, policy=cell.policy.replace("0.01", "0.02"))
    assert other != cell
    doubtful.keep("not a study", [cell, other])
    for each in (cell, other):
        doubtful.add(each, frame(cell))
    with pytest.raises(ValueError, match="names different cells"):
        finals(doubtful)


def test_an_empty_store_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="run a study into it first"):
        write_report(tmp_path)
    assert not (tmp_path / "report").exists()


def test_figures_are_whole_and_repeatable(store, report, tmp_path):
    assert report["png"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert ElementTree.parse(report["svg"]).getroot().tag.endswith("svg")
    assert report["pdf"].read_bytes().startswith(b"%PDF-")
    again = draw_regret(curves(store), tmp_path)
    for kind, path in again.items():
        assert path.read_bytes() == report[kind].read_bytes(), kind


def test_cost_curves_are_medians_that_one_slow_interval_does_not_move(store, tmp_path):
    hiccup = pl.when(pl.col("round") == 20).then(1e6).otherwise(pl.col("update_us"))
    slow = filled(tmp_path, STUDY, lambda rows: rows.with_columns(update_us=hiccup))
    calm, hurt = (curves(s)["cost_us"].to_numpy() for s in (store, slow))
    np.testing.assert_allclose(hurt, calm, rtol=0.2)
    assert len(T) > SMOOTHING


def test_each_of_thirty_policies_has_its_own_look_and_shipped_ones_keep_theirs():
    assert len(set(looks([f"policy {k:02}" for k in range(30)]).values())) == 30
    assert len(set(FIXED.values())) == len(FIXED)
    few = looks(["my own", "Oracle", "DOMD-GLB"])
    many = looks([*reversed(NAMES), "my own", "another"])
    assert few["DOMD-GLB"] == many["DOMD-GLB"] == FIXED["DOMD-GLB"]
    assert len(set(many.values())) == len(many)
    names = {getattr(entry.policy, "name", None) for entry in CATALOGUE}
    assert {name for name in names if isinstance(name, str)} <= set(FIXED)


@pytest.mark.parametrize("seed", range(20))
def test_labels_are_spread_apart_in_order_and_no_further_than_they_must(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(0.0, 100.0, 8)
    places = spread(wanted, 9.0, 0.0, 100.0)
    order = np.argsort(wanted)
    assert (np.diff(places[order]) > 9.0 - 1e-9).all()
    assert places.min() >= 0.0
    assert places.max() <= 100.0
    best = ((places - wanted) ** 2).sum()
    for _ in range(300):  # no allowed neighbour is nearer to what is wanted
        other = places + rng.normal(0.0, 0.5, 8)
        gaps = np.diff(other[order])
        if (gaps >= 9.0).all() and other.min() >= 0.0 and other.max() <= 100.0:
            assert ((other - wanted) ** 2).sum() >= best - 1e-9
    far = np.array([50.0, 10.0, 90.0])
    np.testing.assert_allclose(spread(far, 9.0, 0.0, 100.0), far)


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_have_the_width_that_was_asked_for_and_embedded_fonts(store, tmp_path, width):
    paths = draw_regret(curves(store), tmp_path, width, focus=["DOMD-GLB"])
    box = re.search(rb"/MediaBox \[([^\]]*)\]", paths["pdf"].read_bytes())
    assert float(box.group(1).split()[2]) == pytest.approx(72 * WIDTHS[width].inches)
    assert b"/FontFile2" in paths["pdf"].read_bytes()  # TrueType, as Type 42
    assert b"/Type3" not in paths["pdf"].read_bytes()


def test_names_stand_at_line_ends_without_overlap(store):
    from driftbandit.lab.report.figures import emphasis, regret_figure

    data = curves(store)
    figure = regret_figure(data, WIDTHS["full"], emphasis(data))
    above = figure.axes[0]
    boxes = [text.get_window_extent() for text in above.texts]
    assert {text.get_text().replace("\\", "") for text in above.texts} == set(POLICIES)
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    grey = regret_figure(data, WIDTHS["full"], emphasis(data, focus=["Oracle"]))
    assert [text.get_text() for text in grey.axes[0].texts] == ["Oracle"]


def test_tables_mark_what_the_test_calls_best_and_never_the_oracle(store):
    zebra = panels(finals(store))[0]
    rows = {row[0].text: dict(zip(zebra.header[1:], row[1:])) for row in zebra.rows}
    assert zebra.title == "zebra"
    assert rows["DOMD-GLB"]["regret"] == ("108 ± 6.45", True)
    assert rows[EVIL]["regret"] == ("180 ± 25.8", False)
    assert rows["Oracle"]["regret"] == ("25 ± 0", False)
    assert rows[EVIL]["seeds"].text == "4"
    difference = "difference to DOMD-GLB [95\N{NO-BREAK SPACE}%]"
    assert rows[EVIL][difference].text == "72.5 [41.7, 103]"
    assert rows["DOMD-GLB"][difference].text == "reference"
    assert rows[EVIL]["p"].text == "0.005"
    assert rows[EVIL]["µs per round, early → late"].text == "9 → 49"
    assert rows[EVIL]["memory"] == ("64 B", False)
    assert [row[0].text for row in overview(finals(store)).rows] == POLICIES


def test_a_policy_on_fewer_seeds_is_compared_on_those_and_says_so(tmp_path):
    few = filled(tmp_path, STUDY.replace('type = "GLBOMD"', 'type = "GLBOMD"\nseeds = 3'))
    row = line(finals(few), WORLDS[0], EVIL)
    assert (row["seeds"], row["common"]) == (3, 3)
    assert row["difference"] == pytest.approx(50 * (1.0 + 0.3 * 1.0))  # seeds 0, 1, 2
    header, *rows = (
        overview(finals(few)).header,
        *([i.text for i in r] for r in overview(finals(few)).rows),
    )
    assert header[1] == "seeds"
    assert [row[1] for row in rows] == ["3", "4", "4"]
    assert final_regrets(few).height == 2 * (3 + 4 + 4)


def test_only_the_policies_asked_for_are_shown(store, tmp_path):
    paths = write_report(store.folder, tmp_path, policies=["Oracle", "DOMD-GLB"], hero="Oracle")
    assert EVIL not in paths["md"].read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', paths["html"].read_text()).group(1))
    assert [(p["label"], p["hero"]) for p in data["policies"]] == [
        ("DOMD-GLB", False),
        ("Oracle", True),
    ]
    assert names_of(store.folder, "Oracle, DOMD-GLB") == ["Oracle", "DOMD-GLB"]
    for wrong in ({"hero": "Nobody"}, {"focus": ["Nobody"]}, {"policies": ["Nobody"]}):
        with pytest.raises(ValueError, match="no policy 'Nobody'"):
            write_report(store.folder, tmp_path, **wrong)
    with pytest.raises(ValueError, match="neurips"):
        write_report(store.folder, tmp_path, width="a4")


def test_names_with_commas_are_found_whole(tmp_path):
    tiny, store, cells = cells_of(parse_study(STUDY, "tiny"), 4)[0], RunStore(tmp_path), []
    for label in ("a, b", "a", "b"):
        cells.append(dataclasses.replace(tiny, policy_label=label))
    store.keep(STUDY, cells)
    store.add(tiny, frame(tiny))
    assert names_of(tmp_path, "a, b") == ["a, b"]
    assert names_of(tmp_path, "b,a") == ["b", "a"]
    assert names_of(tmp_path, None) == []


TUNED = STUDY.replace("horizon = 50", "horizon = 50\nfirst_seed = 2").replace(
    'type = "DOMD"', 'type = "DOMD"\ntune_on = 2\ndiscount = [0.5, 0.9, 0.99]\nscale = 0.2'
)


def test_what_tuning_chose_is_shown_in_each_world(tmp_path):
    store, study = RunStore(tmp_path), parse_study(TUNED, "tuned")
    (trial,) = study.trials()
    assert [(entry.type, trial.seeds, trial.first_seed) for entry in trial.policies] == [
        ("DOMD", 2, 0)
    ]
    tried = cells_of(trial, 4)
    tuning = RunStore(tmp_path / "tuning")
    tuning.keep(TUNED, tried)
    for cell in tried:
        tuning.add(cell, frame(cell))
    wanted = {WORLDS[0]: 0.5, WORLDS[1]: 0.99}
    cells = [
        cell
        for cell in cells_of(study, 4)
        if cell.policy_label != "DOMD-GLB"
        or json.loads(cell.swept)["policy.discount"] == wanted[cell.environment_label]
    ]
    store.keep(TUNED, cells)
    for cell in cells:
        rows = frame(dataclasses.replace(cell, seeds=(0, 1, 2, 3)))
        store.add(cell, rows.with_columns(pl.col("seed") + 2))
    assert chosen(store) == {(w, "DOMD-GLB"): f"discount {value}" for w, value in wanted.items()}
    table = panels(finals(store), chosen(store))[1]
    place = table.header.index("chosen by tuning")
    assert [row[place].text for row in table.rows] == ["", "discount 0.99", ""]
    assert "discount 0.99" in re.sub(
        "[\u2007\u2008]", "", write_report(tmp_path)["html"].read_text()
    )


def test_sweeps_are_lines_over_values_where_all_else_stays_the_same():
    text = STUDY.replace(
        'type = "DOMD"', 'type = "DOMD"\nscale = [0.1, 0.2, 0.4]\nlabel = "scale {scale}"'
    ).replace(f'label = "{WORLDS[0]}"', 'turns = [1.0, 2.0, 4.0]\nlabel = "{turns:g} turns"')
    study = parse_study(text, "swept")
    lines = [
        {"environment": w, "policy": p, "mean": 10.0 * k, "deviation": 2.0, "seeds": 4}
        for w, world, _ in study.worlds()
        for k, (p, _, _) in enumerate(study.contenders(world))
    ]
    found = sweeps(cells_of(study, 4), pl.DataFrame(lines))
    kinds = {(s.kind, s.quantity, s.of_worlds) for s in found}
    assert kinds == {("Circle", "turns", True), ("DOMD", "scale", False)}
    assert len(found) == 5 + 4  # turns for every policy, scale in every world
    scale = next(s for s in found if not s.of_worlds)
    assert (scale.values, scale.regrets) == ((0.1, 0.2, 0.4), (10.0, 20.0, 30.0))
    assert scale.halves == pytest.approx([QUANTILE * 2.0 / 2] * 3)


def test_two_swept_numbers_are_named_lines_and_a_grid():
    text = STUDY.replace(
        'type = "DOMD"',
        'type = "DOMD"\nscale = [0.1, 0.2, 0.4]\nregularization = [1.0, 5.0, 25.0]\n'
        'label = "scale {scale}, lambda {regularization}"',
    )
    study = parse_study(text, "swept twice")
    lines = [
        {"environment": w, "policy": p, "mean": 10.0 * k, "deviation": 2.0, "seeds": 4}
        for w, world, _ in study.worlds()
        for k, (p, _, _) in enumerate(study.contenders(world))
    ]
    cells = cells_of(study, 4)
    found = sweeps(cells, pl.DataFrame(lines))
    assert len(found) == 2 * (3 + 3)  # each number, at each value of the other, in each environment
    assert len({(sweep.quantity, sweep.line) for sweep in found}) == len(found)
    assert f"{WORLDS[0]}, regularization = 25" in {sweep.line for sweep in found}
    first = grids(cells, pl.DataFrame(lines))[0]
    assert (first.quantities, first.across) == (("regularization", "scale"), (0.1, 0.2, 0.4))
    start = next(k for k, x in enumerate(lines) if x["policy"].startswith("scale 0.1"))
    means = [x["mean"] for x in lines[start : start + 9]]
    np.testing.assert_allclose(np.transpose(first.regrets), np.reshape(means, (3, 3)))


def test_tables_have_the_columns_that_are_asked_for(store, tmp_path):
    (table, _) = panels(finals(store), columns=["p", "regret"])
    assert table.header == ("policy", "p", "regret")
    assert any(row[2].best for row in table.rows)
    with pytest.raises(ValueError, match="no column 'regrets': there are seeds, regret"):
        panels(finals(store), columns=["regrets"])
    paths = write_report(store.folder, tmp_path, columns=["regret"])
    latex = paths["tex"].read_text()
    labels = re.findall(r"\\label{(tab:[a-z0-9-]+)}", latex)
    assert len(labels) == len(set(labels)) == latex.count(r"\begin{table}")


def test_decimal_points_of_a_column_stand_one_below_the_other():
    texts = aligned(["108 ± 6.45", "25.8 ± 10", "0 ± 0", "–", "1.25 ± 100"])
    points = [text.replace("\u2008", ".").split("±")[0].index(".") for text in texts if "±" in text]
    assert len(set(points)) == 1
    assert len({len(text) for text in texts if "±" in text}) == 1
    assert [re.sub("[\u2007\u2008]", "", text) for text in texts][:2] == ["108 ± 6.45", "25.8 ± 10"]


def test_markdown_and_latex_are_escaped(store, report):
    markdown, latex = report["md"].read_text(), report["tex"].read_text()
    assert "<script>" not in markdown.replace(r"\<script\>", "")
    assert r"apple \| \<b\>" in markdown
    assert r"GLB \& \textless{}script\textgreater{}" in latex
    assert r"50\% \$x\_1\$" in latex
    for table in (overview(finals(store)), *panels(finals(store))):
        body = [text for text in to_markdown(table).splitlines() if text.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", text)) for text in body} == {len(table.header) + 1}
        rows = [text for text in to_latex(table).splitlines() if text.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", text)) for text in rows} == {len(table.header) - 1}


class Resources(HTMLParser):
    """Tags, ids, and everything that a page would fetch."""

    def __init__(self):
        super().__init__()
        self.tags, self.ids, self.fetched = [], [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.ids.append(attributes.get("id"))
        self.fetched += [v for k, v in attributes.items() if k in ("src", "srcset", "data")]
        if tag == "link":
            self.fetched.append(attributes.get("href"))


def test_the_page_fetches_nothing_and_escapes_everything(report):
    text = report["html"].read_text()
    page = Resources()
    page.feed(text)
    assert page.fetched == []
    assert page.tags.count("script") == 2  # data, ours
    assert not re.search(r"@import|url\(\s*['\"]?http", text.split("</style>")[0])
    assert '<html lang="en">' in text
    assert "alert(1)</script>" not in text
    assert "A &lt;title&gt; &amp; more" in text
    assert "by &lt;hand&gt;" in text
    assert "shared cores" in text
    assert "toggle-DOMD-GLB" in page.ids
    used = [name for name in page.ids if name]
    assert len(used) == len(set(used))


def test_the_page_holds_its_data_once(report):
    found = re.search(r'id="data">(.*?)</script>', report["html"].read_text())
    data = json.loads(found.group(1))
    assert [policy["label"] for policy in data["policies"]] == POLICIES
    first = data["worlds"][0]
    assert first["t"] == T.tolist()
    assert first["series"][1]["regret"][-1] == 107.5
    assert "error" not in first["series"][2]


@pytest.fixture
def page(browser, report):
    yield opened(browser, report["html"])
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


def opened(browser, path):
    browser.get(Path(path).resolve().as_uri())
    wait_until(browser, "document.body.dataset.state === 'ready'")
    return browser


def wait_until(browser, condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not browser.execute_script(f"return {condition}"):
        assert time.monotonic() < end, f"never happened: {condition}"
        time.sleep(0.05)


def drawn(browser, number=None):
    """The policies with a line, per chart of a world; charts are drawn when they come into view."""
    if number is not None:
        browser.execute_script(f"charts[{number}].scrollIntoView()")
        wait_until(
            browser,
            f"charts[{number}].querySelector('.line') !== null || "
            "[...boxes].every(box => !box.checked)",
        )
    return browser.execute_script(
        "return charts.map(c => [...c.querySelectorAll('.line')]"
        ".map(line => data.policies[line.dataset.line].label))"
    )


def entry(browser, policy, section=0):
    script = "return document.querySelectorAll('section[data-world]')[arguments[0]]"
    parent = browser.execute_script(script, section)
    found = parent.find_elements("css selector", ".readout button")
    return next(button for button in found if policy in button.text)


@needs_chromium
def test_every_chart_is_drawn_when_it_comes_into_view(page):
    assert page.title == "A <title> & more"
    for number in range(2 * 5):
        shown = drawn(page, number)[number]
        # The oracle has no tracking error and no confidence set; the hero comes last.
        assert set(shown) == set(POLICIES[: 3 if number % 5 < 3 else 2])
        assert shown[-1] == "DOMD-GLB"


@needs_chromium
def test_a_checkbox_hides_its_policy_in_every_chart(page):
    box = page.find_element("id", "toggle-DOMD-GLB")
    box.click()
    for number in range(2 * 5):
        shown = drawn(page, number)[number]
        assert "DOMD-GLB" not in shown
        assert EVIL in shown
    page.execute_script("scrollTo(0, 0)")
    box.click()
    assert "DOMD-GLB" in drawn(page, 0)[0]
    page.find_element("id", "none").click()
    assert drawn(page)[0] == []


@needs_chromium
def test_the_readout_is_a_legend_where_a_double_click_isolates(page):
    from selenium.webdriver import ActionChains

    page.execute_script("charts[0].scrollIntoView()")
    entry(page, "DOMD-GLB").click()
    wait_until(page, "!document.getElementById('toggle-DOMD-GLB').checked")
    assert "DOMD-GLB" not in drawn(page, 0)[0]
    assert entry(page, "DOMD-GLB", section=1).get_attribute("aria-pressed") == "false"
    ActionChains(page).double_click(entry(page, "Oracle")).perform()
    assert drawn(page, 0)[0] == ["Oracle"]
    ActionChains(page).double_click(entry(page, "Oracle")).perform()
    assert set(drawn(page, 0)[0]) == set(POLICIES)


@needs_chromium
def test_pointing_shows_sorted_values_beside_the_chart_and_links_the_rounds(page):
    from selenium.webdriver import ActionChains

    drawn(page, 0)
    chart = page.find_elements("css selector", ".chart")[0]
    ActionChains(page).move_to_element_with_offset(chart, 0, 0).perform()
    readout = page.find_element("css selector", ".readout")
    round_ = int(re.search(r"t = (\d+)", readout.text).group(1))
    assert 15 < round_ < 40
    texts = [button.text for button in readout.find_elements("css selector", "button")]
    order = [next(p for p in POLICIES if p in text) for text in texts]
    assert order == sorted(POLICIES, key=lambda p: LEVEL[p])  # least first
    value, deviation = map(float, re.findall(r"[\d.]+", texts[2])[-2:])
    assert value == pytest.approx(round_ * 3.6, abs=0.06)
    assert deviation == pytest.approx(round_ * 0.4 * SPREAD, abs=0.06)
    box, beside = chart.rect, readout.rect
    assert beside["x"] >= box["x"] + box["width"]  # it covers nothing
    lines = "return charts.slice(0, 5).map(c => c.querySelector('.cursor')?.getAttribute('x1'))"
    assert len({x for x in page.execute_script(lines)[1:] if x}) == 1


@needs_chromium
def test_a_dragged_range_of_rounds_holds_for_all_charts_of_its_world(page):
    from selenium.webdriver import ActionChains

    drawn(page, 0)
    chart = page.find_elements("css selector", ".chart")[0]
    drag = ActionChains(page).move_to_element_with_offset(chart, -100, 0).click_and_hold()
    drag.move_by_offset(120, 0).release().perform()
    low, high = page.execute_script("return charts[0].frame.x.domain")
    assert 0 < low < high < 50
    drawn(page, 1)
    wait_until(page, "charts[1].frame.x.domain[0] > 0")
    assert page.execute_script("return charts[1].frame.x.domain") == [low, high]
    drawn(page, 5)
    assert page.execute_script("return charts[5].frame.x.domain") == [0, 50]
    drawn(page, 0)
    ActionChains(page).double_click(chart).perform()
    assert page.execute_script("return charts[0].frame.x.domain") == [0, 50]


@needs_chromium
def test_buttons_switch_axes_between_linear_and_logarithmic(page):
    drawn(page, 0)
    button = page.find_element("css selector", "figure [data-axis=y]")
    kind = "return charts[0].frame.y.isLog"
    assert not page.execute_script(kind)
    button.click()
    assert page.execute_script(kind)
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert not page.execute_script(kind)
    page.find_element("css selector", "figure [data-axis=x]").click()
    drawn(page, 1)
    assert page.execute_script("return charts[1].frame.x.isLog")  # rounds are linked


@needs_chromium
def test_the_theme_reaches_page_and_charts(page):
    drawn(page, 0)
    colours = (
        "return [getComputedStyle(document.body).backgroundColor, "
        "getComputedStyle(charts[0].querySelector('text')).fill]"
    )
    before = page.execute_script(colours)
    page.execute_script("document.getElementById('theme').click()")
    after = page.execute_script(colours)
    assert before[0] != after[0]
    assert before[1] != after[1]


@needs_chromium
def test_a_phone_shows_whole_captions(browser, report):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        opened(browser, report["html"])
        widths = browser.execute_script(
            "return [document.documentElement.scrollWidth, "
            "...[...document.querySelectorAll('figcaption, .readout, .chart')]"
            ".map(e => e.getBoundingClientRect().right)]"
        )
        assert max(widths) <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def large(store, worlds=34, policies=NAMES[:19], seeds=2, points=200):
    """A store of many worlds, written without playing."""
    tiny, t = cells_of(parse_study(STUDY, "tiny"), 4)[0], 25 * np.arange(1, points + 1)
    cells = [
        dataclasses.replace(
            tiny,
            environment_label=f"world {world}",
            policy_label=policy,
            policy=tiny.policy.replace('"type"', f'"place": {place}, "type"'),
            environment=tiny.environment.replace('"horizon": 50', f'"horizon": {world + 2}'),
            seeds=tuple(range(seeds)),
        )
        for world in range(worlds)
        for place, policy in enumerate(policies)
    ]
    store.keep(STUDY, cells)
    for k, cell in enumerate(cells):
        store.add(cell, noisy(cell, t, k))
    return store


def noisy(cell, t, number):
    rng, n = np.random.default_rng(number), len(cell.seeds) * len(t)
    noise = rng.random((len(cell.seeds), len(t))).cumsum(axis=1)
    return pl.DataFrame(
        {
            "environment": [cell.environment_label] * n,
            "policy": [cell.policy_label] * n,
            "seed": np.repeat(cell.seeds, len(t)),
            "round": np.tile(t, len(cell.seeds)),
            "regret": ((number % 19 + 1) * np.sqrt(t) + noise).ravel(),
            **dict.fromkeys(("reward", "update_us"), np.ones(n)),
            "choose_us": 1.0 + rng.random(n),
            **dict.fromkeys(("error", "ratio"), 1.0 + rng.random(n)),
            "bytes": np.full(n, 248),
        }
    )


CLICK = """
const done = arguments[1], begin = performance.now();
arguments[0].click();
requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin)));
"""


@needs_chromium
def test_a_toggle_in_a_report_of_34_worlds_is_drawn_within_a_fifth_of_a_second(browser, tmp_path):
    from driftbandit.lab.report.page import page as html

    store = large(RunStore(tmp_path))
    path = tmp_path / "report.html"
    path.write_text(html(store, [], panels(finals(store)), curves(store)))
    opened(browser, path)
    for section, left in ((0, 18), (33, 19)):  # an odd number of clicks each
        drawn(browser, 5 * section)
        button = entry(browser, "GLOC", section)
        times = [browser.execute_async_script(CLICK, button) for _ in range(7)]
        assert len(drawn(browser)[5 * section]) == left
        # The fastest: others may keep both cores busy, and the page cannot help that.
        assert min(times) < 200.0, times
