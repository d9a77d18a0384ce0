"""Requests made up from the OpenAPI document, right and wrong ones: no answer is undeclared, and
none is the service's own fault. `make torture` makes 100,000 of them.
"""

import os

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from driftbandit.service.dashboard import live
from driftbandit.service.http.openapi import document
from driftbandit.service.limits import Limits
from driftbandit.service.routes import ROUTES
from serving import ARMS, NEWS, ask, in_thread

LONG = bool(os.environ.get("TORTURE"))
CASES = 100_000 if LONG else 100
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
SCHEMA = schemathesis.openapi.from_dict(document(ROUTES, "0"))
OPERATIONS = {each.ok().label: each.ok() for each in SCHEMA.get_all_operations()}
ASKING = [name for name, each in OPERATIONS.items() if [*each.iter_parameters(), *each.body]]
RUNS = [(name, GenerationMode.POSITIVE) for name in OPERATIONS]
RUNS += [(name, GenerationMode.NEGATIVE) for name in ASKING]


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    path = tmp_path_factory.mktemp("schema") / "shop.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "LIFE", 0.5)  # a stream that is read to its end
        with in_thread(path, limits=Limits(rate=1e6, loops=20)) as port:
            assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
            asked = {"context": {"age": 30}, "arms": ARMS, "id": "d"}
            assert ask(port, "POST", "/v1/loops/news/decisions", asked)[0] == 200
            bold = {"exploration": {"type": "Floor", "uniform": 0.5}}
            assert ask(port, "PUT", "/v1/loops/news/candidates/bold", bold)[0] == 201
            yield port


@pytest.mark.parametrize(("label", "mode"), RUNS)
def test_made_up_requests(port, label, mode):
    """Half of those with a name in their path are about the loop that there is."""
    operation, session = OPERATIONS[label], requests.Session()
    there = {"name": "news", "id": "d", "candidate": "bold"}
    names = {name: value for name, value in there.items() if f"{{{name}}}" in label}
    known = {"path_parameters": names} if "{name}" in label else {}
    most = CASES // (2 * len(ASKING) * 2) + 1
    for given_path in (known, {}):

        @settings(
            max_examples=most,
            deadline=None,
            derandomize=not LONG,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode, **given_path))
        def ask_it(case):
            answer = case.call(base_url=f"http://127.0.0.1:{port}", session=session)
            case.validate_response(answer, checks=CHECKS)

        ask_it()
    session.close()
