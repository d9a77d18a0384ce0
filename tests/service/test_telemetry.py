"""Traces by OpenTelemetry: spans of requests with the decisions in them, read by the real SDK."""

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from driftbandit.service.ops.telemetry import Telemetry
from serving import ARMS, NEWS, ask, in_thread

AGE = {"age": 30}
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def traced(tmp_path, no_wait_for_the_disk):
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    with in_thread(tmp_path / "a.db", telemetry=Telemetry(provider)) as port:
        sticky = {**NEWS, "arms": ARMS, "sticky": "1d"}
        assert ask(port, "PUT", "/v1/loops/news", sticky)[0] == 201
        kept.clear()
        yield port, kept


def test_a_decision_is_a_span_with_an_evaluation_and_its_caller(traced):
    port, kept = traced
    head = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    asked = {"context": AGE, "key": "ann"}
    made = ask(port, "POST", "/v1/loops/news/decisions", asked, headers=head)[1]
    (span,) = kept.get_finished_spans()
    assert (span.name, span.kind) == ("POST /v1/loops/{name}/decisions", SpanKind.SERVER)
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["driftbandit.loop"] == "news"
    assert f"{span.context.trace_id:032x}" == TRACE
    assert 0 < span.end_time - span.start_time < 60e9
    (event,) = span.events
    assert event.name == "feature_flag.evaluation"
    assert event.attributes == {
        "feature_flag.key": "news",
        "feature_flag.provider.name": "driftbandit",
        "feature_flag.result.variant": made["arm"],
        "feature_flag.result.reason": "split",
        "driftbandit.decision_id": made["id"],
        "driftbandit.propensity": made["probability"],
        "driftbandit.role": "active",
    }


def test_all_roads_to_a_decision_have_their_evaluations(traced):
    port, kept = traced
    one = {"context": AGE, "key": "ann"}
    flag = {"context": AGE | {"targetingKey": "bob"}}
    ask(port, "POST", "/v1/loops/news/batches", {"decisions": [one, one, {"context": 7}]})
    ask(port, "POST", "/v1/loops/news/decisions", {**one, "k": 2})
    ask(port, "POST", "/ofrep/v1/evaluate/flags/news", flag)
    ask(port, "POST", "/ofrep/v1/evaluate/flags", flag)
    spans = kept.get_finished_spans()
    assert [len(span.events) for span in spans] == [0, 1, 1, 1]  # the batch was malformed
    keys = {event.attributes["feature_flag.key"] for span in spans for event in span.events}
    assert keys == {"news"}
    slate = spans[1].events[0].attributes["feature_flag.result.variant"]
    assert sorted(slate.split(", ")) == ["a", "b"]
    ask(port, "POST", "/v1/loops/news/batches", {"decisions": [one, one]})
    assert len(kept.get_finished_spans()[-1].events) == 2


def test_what_is_refused_is_a_span_without_an_evaluation(traced):
    port, kept = traced
    ask(port, "POST", "/v1/loops/news/decisions", {"context": {"age": "x"}, "key": "ann"})
    ask(port, "POST", "/v1/loops/nothing/decisions", {"context": AGE})
    spans = kept.get_finished_spans()
    assert [span.attributes["http.response.status_code"] for span in spans] == [422, 404]
    assert not any(span.events for span in spans)
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET}


def test_it_is_off_by_default_and_names_its_extra():
    program = """
import sys
import driftbandit.service.server
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
sys.modules["opentelemetry"] = None
from driftbandit.service.ops.telemetry import Telemetry
try:
    Telemetry()
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "telemetry needs OpenTelemetry: pip install 'driftbandit[otel]'\n"
