"""Measurements on the pages: made by a command, never typed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md"))
FILLED = re.compile(r"<!-- (?:table|say|example|output): .*?<!-- end -->", flags=re.S)
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]*`|^    [^\n]*$", flags=re.M | re.S)
UNITS = "µs|us|ms|ns|s|seconds?|microseconds|milliseconds|[kMG]B|bytes|nats|times|%|per cent"
UNITS += "|(?:decisions|requests|rows|rewards) a second"
MEASURE = re.compile(rf"(?<![\w.^-])\d[\d.,]*(?: to \d[\d.,]*)? ?(?:{UNITS})(?!\w)")

LEVEL = "95 %"  # of confidence: a definition wherever it stands
# What is no measurement, or is held by a test; everything else belongs between markers.
KNOWN = {
    "auto.md": {
        "0.01 %": "the default of share",
        "0.3 %": "TAUGHT of policies/auto.py",
        "2 %": "an example",
        "5 nats": "core/auto.py",
        "8 nats": "the default of renewal",
        "10 nats": "log 10 nats: SURE of policies/auto.py",
    },
    "budgets.md": {
        "3 %": "EXPLORED of loop/exploration.py",
        "5 %": "an example",
        "105 %": "KEPT of estimators/spend.py",
    },
    "cold-start.md": {
        "8 kB": "arithmetic, (d + 1) d numbers",
        "100 MB": "the bound of loop/learning/key_cache.py",
    },
    "contract.md": {"200 times": "tests/loop/test_torture.py"},
    "settings.md": {"5 %": "an example"},
    "speed.md": {"20 s": "benchmarks/loop.py"},
    "bob.md": {"2.5 times": "arithmetic, 1 / (1 - 2^(-3/4))"},
    "evidence.md": {"1 %": "the default of limit"},
    "features.md": {"50 times": "SPAN of features/declarations.py"},
    "gdpr.md": {"64 MB": "REWRITTEN of loop/storage/sqlite.py and postgres.py"},
    "loop-reference.md": {"5 %": "LEVEL of loop/reporting/drift_report.py"},
    "peers.md": {"20 %": "what make bench-guard allows"},
    "promises.md": {"99 %": "what the figure is"},
    "promotion.md": {
        "1 %": "FAIR of loop/candidates/comparison.py, and an example",
        "5 %": "the guarantee, loop/state/spending.py",
        "5.5 %": "an example",
        "10 %": "an example",
    },
    "reproduced.md": {"5 %": "SHARE of benchmarks/sharp.py"},
    "rewards.md": {"20 seconds": "an example"},
    "service.md": {
        "5 s": "a time limit",
        "10 s": "a time limit",
        "25 s": "a time limit",
        "4 kB": "CHARGED of service/http/gateway.py",
        "50 times": "tests/service/test_torture.py",
        "64 MB": "REWRITTEN of loop/storage/postgres.py",
        "75 seconds": "the demo's turns",
    },
    "theory.md": {
        "0.3 %": "TAUGHT of policies/auto.py",
        "6 nats": "arithmetic, log(1/0.003)",
        "7 nats": "arithmetic, log(1000)",
        "12 nats": "arithmetic, log(21/1e-4)",
    },
}


def typed(text):
    """Numbers with a unit of time, memory or a ratio that somebody wrote into a sentence."""
    return sorted(set(MEASURE.findall(CODE.sub("", FILLED.sub("", text)))))


@pytest.mark.parametrize("page", PAGES)
def test_no_measurement_is_typed(page):
    found = set(typed((ROOT / "docs" / page).read_text())) - {LEVEL}
    known = set(KNOWN.get(page, ()))
    assert found <= known, "fill it in with <!-- say: name -->, or list here what it is"
    assert known <= found, "no longer on the page"


def test_what_counts_as_typed():
    text = "It takes 1.5 to 3 ms, <!-- say: x -->7 ms<!-- end -->, `8 ms`, 2,000 requests a second."
    assert typed(text) == ["1.5 to 3 ms", "2,000 requests a second"]
    assert typed("```\n3 ms\n```\nT = 5000, from 32 dimensions on, 2^53 times") == []
