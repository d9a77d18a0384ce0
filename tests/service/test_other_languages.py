"""The contract of clients in other languages, by plain HTTP, as their page states it."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from driftbandit.service.http.openapi import document
from driftbandit.service.routes import ROUTES
from serving import ask, in_thread

PAGE = Path(__file__).parents[2] / "docs" / "other-languages.md"


@pytest.fixture
def url(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "shop.db") as port:
        yield f"http://127.0.0.1:{port}"


def test_the_page_runs_and_its_rules_hold(url, tmp_path):
    scripts = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), flags=re.S)
    run = {"env": os.environ | {"URL": url}, "cwd": tmp_path, "text": True}
    said = [
        subprocess.run(["bash", "-euc", each], check=True, capture_output=True, **run).stdout
        for each in scripts
    ]
    fetched = json.loads((tmp_path / "openapi.json").read_text())
    assert fetched["openapi"] == "3.1.0"
    _, first, again, reward, records = re.findall(r"{.*?}(?=$|{)", said[1].replace("\n", ""))
    assert json.loads(first) == json.loads(again)
    assert json.loads(first)["id"] == "visit-1"
    assert json.loads(reward) == {"outcome": "counted"}
    assert json.loads(records) == {"decisions": [{"outcome": "recorded"}]}
    port = int(url.rsplit(":", 1)[1])
    counts = ask(port, "GET", "/v1/loops/banner/health")[1]["counts"]
    assert (counts["decide"], counts["reward counted"]) == (2, 1)
    other = {"id": "visit-1", "context": {"age": 50}, "key": "user-17", "default": "summer"}
    status, problem, _ = ask(port, "POST", "/v1/loops/banner/decisions", other)
    assert (status, "new id" in problem["detail"]) == (409, True)


def test_generators_find_what_they_need():
    """Every operation has its own name, every message a schema, and every reference a target."""
    made = document(ROUTES, "1")
    operations = [each for path in made["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(set(names)) == len(names)
    text = json.dumps(made)
    schemas = made["components"]["schemas"]
    assert {*re.findall(r"#/components/schemas/(\w+)", text)} <= schemas.keys()
    for each in operations:
        assert each["responses"]
        assert all(re.fullmatch(r"\d{3}", status) for status in each["responses"])
    for name, schema in schemas.items():
        assert schema.get("description"), name
