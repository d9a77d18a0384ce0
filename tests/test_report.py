"""The report of a stored study, from numbers that can be worked out by hand; then in Chromium."""

import dataclasses
import json
import math
import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from driftbandit.lab.cells import cells_of
from driftbandit.lab.figures import draw_regret, looks
from driftbandit.lab.page import write_report
from driftbandit.lab.spec import changed, parse_study
from driftbandit.lab.store import Store
from driftbandit.lab.summary import curves, finals
from driftbandit.lab.tables import overview, panels, to_latex, to_markdown

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
            "environment": pl.Series([cell.environment_label] * (n * k)).cast(pl.Categorical),
            "policy": pl.Series([policy] * (n * k)).cast(pl.Categorical),
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


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(Store(tmp_path_factory.mktemp("study")))


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
    assert row["coverage"] == pytest.approx(2 / 3)
    assert line(whole, WORLDS[0], "Oracle")["coverage"] is None


def test_other_blocks_and_cells_of_an_earlier_text_change_nothing(store, tmp_path):
    other = fill(fill(Store(tmp_path)), block=3)
    for cell in cells_of(parse_study(STUDY.replace("= 50", "= 40"), "old"), 4):
        other.add(cell, frame(cell).with_columns(pl.col("regret") * 7))
    assert len(list(other.cells.glob("*.parquet"))) > 2 * 6
    for mine, theirs in ((finals(store), finals(other)), (curves(store), curves(other))):
        assert mine.drop(pl.selectors.float()).equals(theirs.drop(pl.selectors.float()))
        for name in mine.select(pl.selectors.float()).columns:
            np.testing.assert_allclose(mine[name].to_numpy(), theirs[name].to_numpy())


def test_a_run_with_changed_numbers_is_what_is_shown(tmp_path):
    store = fill(Store(tmp_path))
    text = changed(STUDY, horizon=60)
    cells = cells_of(parse_study(text, "tiny"), 4)
    store.keep(text, cells)
    for cell in cells:
        store.add(cell, frame(cell).with_columns(pl.col("round") + 10, pl.col("regret") * 2))
    row = line(finals(store), WORLDS[0], "DOMD-GLB")
    assert (row["horizon"], row["mean"]) == (60, pytest.approx(2 * 107.5))


def test_cells_that_the_study_no_longer_has_are_not_shown(tmp_path):
    mixed = fill(Store(tmp_path))
    cell = cells_of(parse_study(STUDY, "tiny"), 4)[0]
    mixed.add(dataclasses.replace(cell, policy_label="older"), frame(cell))
    assert finals(mixed)["policy"].unique().sort().to_list() == POLICIES


def test_one_seed_has_no_deviation_and_no_interval(tmp_path):
    single = Store(tmp_path)
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
    doubtful = Store(tmp_path)
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


def test_each_of_thirty_policies_has_its_own_look():
    names = [f"policy {k:02}" for k in range(30)]
    many = pl.DataFrame({"policy": pl.Series(names, dtype=pl.Enum(names))})
    assert len(set(looks(many).values())) == 30


def test_tables_mark_the_best_and_never_the_oracle(store):
    zebra = panels(finals(store))[0]
    rows = {row[0].text: row[1:] for row in zebra.rows}
    assert zebra.title == "zebra"
    assert rows["DOMD-GLB"][0] == ("108 ± 6.45", True)
    assert rows[EVIL][0] == ("180 ± 25.8", False)
    assert rows["Oracle"][0] == ("25 ± 0", False)
    assert rows[EVIL][1].text == "72.5 [41.7, 103]"
    assert rows["DOMD-GLB"][1] == ("reference", True)
    assert rows[EVIL][2].text == "9 → 49"
    assert rows[EVIL][3] == ("64 B", False)  # as much as the other
    assert [row[0].text for row in overview(finals(store)).rows] == POLICIES


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
    assert page.tags.count("script") == 3  # data, plotly.js, ours
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


CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--window-size=1300,1000",
)
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs Debian's chromium and chromium-driver"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, report):
    browser.get(Path(report["html"]).resolve().as_uri())
    wait_until(browser, "document.body.dataset.state === 'ready'")
    yield browser
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []


def wait_until(browser, condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not browser.execute_script(f"return {condition}"):
        assert time.monotonic() < end, f"never happened: {condition}"
        time.sleep(0.05)


def visible(browser):
    """Per chart: for each policy, whether its traces are shown."""
    return browser.execute_script(
        "return charts.map(c => Object.fromEntries("
        "c.data.map(t => [data.policies[t.meta].label, t.visible === true])))"
    )


@needs_chromium
def test_every_chart_is_drawn(page):
    shown = visible(page)
    assert len(shown) == 2 * 5
    assert set(shown[0]) == set(POLICIES)
    assert all(all(chart.values()) for chart in shown)
    assert page.title == "A <title> & more"
    lines = page.execute_script("return charts.map(c => c.querySelectorAll('.js-line').length)")
    assert min(lines) >= 2


@needs_chromium
def test_a_checkbox_hides_its_policy_in_every_chart(page):
    box = page.find_element("id", "toggle-DOMD-GLB")
    box.click()
    for chart in visible(page):
        assert not chart["DOMD-GLB"]
        assert all(shown for policy, shown in chart.items() if policy != "DOMD-GLB")
    box.click()
    assert all(chart["DOMD-GLB"] for chart in visible(page))
    page.find_element("id", "none").click()
    assert not any(any(chart.values()) for chart in visible(page))


@needs_chromium
def test_a_click_in_the_legend_hides_the_policy_too(page):
    page.execute_script("charts[0].scrollIntoView()")
    page.find_elements("css selector", ".legendtoggle")[1].click()
    wait_until(page, "!document.getElementById('toggle-DOMD-GLB').checked")
    assert not any(chart["DOMD-GLB"] for chart in visible(page))


@needs_chromium
def test_buttons_switch_axes_between_linear_and_logarithmic(page):
    button = page.find_element("css selector", "figure [data-axis=y]")
    kind = "return charts[0]._fullLayout.yaxis.type"
    assert page.execute_script(kind) == "linear"
    button.click()
    assert page.execute_script(kind) == "log"
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert page.execute_script(kind) == "linear"


@needs_chromium
def test_the_theme_reaches_page_and_charts(page):
    colours = (
        "return [getComputedStyle(document.body).backgroundColor, charts[0].layout.font.color]"
    )
    before = page.execute_script(colours)
    page.find_element("id", "theme").click()
    after = page.execute_script(colours)
    assert before[0] != after[0]
    assert before[1] != after[1]
