"""Results in notebooks: whole tables with the right numbers, escaped, without script."""

from html.parser import HTMLParser

import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Circle,
    Features,
    Log,
    Loop,
    Problem,
    Reward,
    Uniform,
    evaluate,
    simulate,
)
from driftbandit.html_table import table


class Cells(HTMLParser):
    """The text of cells and paragraphs; every tag that opens must close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], set(), []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert attrs == []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(result):
    cells = Cells(result._repr_html_())
    assert "script" not in cells.tags
    return cells.texts


@pytest.fixture(scope="module")
def loop():
    features = Features(arm={"name": Category(["a", "<script>"])})
    arms = {name: {"name": name} for name in ("a", "<script>")}
    clicks = Reward(0, 1, wait=10, missing=0)
    options = {"clock": "events", "training": "inline", "policy": DOMD, "exploration": 0.5}
    with Loop(":memory:", features=features, arms=arms, reward=clicks, **options) as made:
        made.shadow("new", exploration=0.2)
        for t in range(40):
            made.reward(made.decide({}, at=float(t)).id, t % 2, at=float(t))
        made.close_windows(100.0)
        yield made


def test_a_table_escapes_what_it_shows():
    cells = Cells(table("<b>", ["&"], [[None, 0.123456, "<i>"]], ["<script>"]))
    assert cells.texts == ["<b>", "&", "–", "0.1235", "<i>", "<script>"]


def test_a_decision_shows_all_probabilities_and_its_arm(loop):
    one = loop.decide({}, id="one", at=101.0)
    texts = shown(one)
    assert texts[0] == "Decision one, active"
    for arm, p in one.probabilities.items():
        assert texts[texts.index(arm) + 1] == f"{p:.4g}"
    assert texts[texts.index("chosen") - 2] == one.arm


def test_health_shows_the_values_of_policies(loop):
    health = loop.health()
    texts = shown(health)
    mean = next(one for one in health.values.values() if one)
    assert f"{mean.mean:.4g}" in texts
    assert f"{health.rewards:,} rewards" in texts[0]


def test_a_comparison_shows_values_and_differences(loop):
    found = loop.compare()
    texts = shown(found)
    assert f"{found.values['new'].value:.4g}" in texts
    assert all(each.words() in texts for each in found.leads)


def test_an_evaluation_shows_values_and_verdicts(loop):
    found = evaluate(Log.read(loop.log(), reward=Reward(0, 1)), {"chance": Uniform()})
    texts = shown(found)
    assert f"{found.values['chance'].sequence[0]:.4g}" in texts
    assert found.verdicts[0] in texts


def test_a_run_shows_its_regret():
    world = Circle(horizon=50)
    run = simulate(Uniform(problem=world.problem), world, range(3))
    assert f"{run.total.mean():.4g}" in shown(run)


def test_an_explanation_shows_memory_and_weights():
    found = Bandit(AutoDOMD(problem=Problem(dim=2))).explain()
    texts = shown(found)
    assert found.state in texts
    assert all(f"weight of discount {one:g}" in texts for one in found.discounts)
