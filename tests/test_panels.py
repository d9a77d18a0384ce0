"""What the pages say of AutoDOMD and the best rival: the least regret of the whole catalogue."""

import csv
import re
from pathlib import Path

import pytest

from driftbandit.lab import read_study
from driftbandit.policies.catalogue import CATALOGUE

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def panels():
    """Mean regrets by panel and policy."""
    found = {}
    with (ROOT / "docs/results/whole-catalogue.csv").open() as file:
        for line in csv.DictReader(file):
            assert int(line["seeds"]) >= 20
            found.setdefault(line["environment"], {})[line["policy"]] = float(line["mean"])
    return found


def said(page, name):
    return re.search(rf"<!-- say: {name} -->(.*?)<!-- end -->", (ROOT / page).read_text())[1]


def ratios():
    """What an outsider computes from the regrets of all seeds, and from nothing else."""
    means = {}
    with (ROOT / "docs/results/whole-catalogue-seeds.csv").open() as file:
        for line in csv.DictReader(file):
            panel, policy = line.pop("environment"), line.pop("policy")
            regrets = [float(regret) for regret in line.values() if regret]
            means.setdefault(panel, {})[policy] = sum(regrets) / len(regrets)
    for panel in means.values():
        mine = panel.pop("AutoDOMD")
        del panel["Oracle"]  # it is told theta
        yield mine / min(panel.values())


def test_the_study_plays_the_whole_catalogue(panels):
    study = read_study("whole-catalogue")[0]
    kinds = set()
    for label, world, _ in study.worlds():
        contenders = study.contenders(world)
        assert {name for name, _, _ in contenders} == set(panels[label])
        kinds |= {type(policy) for _, policy, _ in contenders}
    assert kinds == {entry.policy for entry in CATALOGUE}


def test_readmes_ratios_are_to_the_least_regret_of_the_whole_catalogue():
    numbers = [float(x) for x in re.findall(r"\d\.\d\d", said("README.md", "panels"))]
    assert numbers == [round(ratio, 2) for ratio in ratios()]
    assert (
        int(said("README.md", "othermethods")) == len(CATALOGUE) - 2
    )  # but AutoDOMD and the oracle


def test_the_stored_ratios_are_the_same(panels):
    with (ROOT / "docs/results/panels.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [x["panel"] for x in lines] == list(panels)
    for line, ratio in zip(lines, ratios(), strict=True):
        assert float(line["ratio"]) == pytest.approx(ratio, abs=2e-4)
        assert float(line["ratio_low"]) < ratio < float(line["ratio_high"])


def test_level_is_said_where_the_interval_includes_one():
    text = said("README.md", "standing")
    said_of = {part.split(" ")[0] + part.split(" ")[1]: part for part in text.split(", and ")}
    level, behind = said_of.get("islevel", ""), said_of.get("isbehind", "")
    with (ROOT / "docs/results/panels.csv").open() as file:
        for x in csv.DictReader(file):
            inside = float(x["ratio_low"]) <= 1.0 <= float(x["ratio_high"])
            assert (f"{x['rival']} in *{x['panel']}*" in level) == inside
            more = float(x["ratio_low"]) > 1.0
            assert (f"{x['rival']} in *{x['panel']}*" in behind) == more


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/auto.md"])
def test_no_page_claims_more(page):
    assert "by far the least" not in (ROOT / page).read_text()
