"""Traces by OpenTelemetry: a span for every request, and in it the event `feature_flag.evaluation`
for every decision. Off by default; the extra `otel` has what it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from driftbandit import __version__
from driftbandit.service.schema import messages as m

EVALUATION = "feature_flag.evaluation"
PROPAGATED = (b"traceparent", b"tracestate")  # who asked, as W3C Trace Context has it


class Telemetry:
    """Spans, sent as the OTEL_* variables of the environment say, or to a `provider` of yours."""

    def __init__(self, provider: Any = None) -> None:
        self._otel = _opentelemetry()
        self._provider = provider or _exporting()
        self._tracer = self._provider.get_tracer("driftbandit", __version__)

    def record(
        self,
        head: Mapping[bytes, bytes],
        method: str,
        route: str,
        loop: str | None,
        status: int,
        seconds: float,
        answer: Any,
    ) -> None:
        """Record a request that took so many seconds until now."""
        end = time.time_ns()
        attributes: dict[str, Any] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        if loop is not None:
            attributes["driftbandit.loop"] = loop
        carrier = {k.decode(): head[k].decode("latin-1") for k in PROPAGATED if k in head}
        span = self._tracer.start_span(
            f"{method} {route}",
            context=self._otel.propagate.extract(carrier) if carrier else None,
            kind=self._otel.trace.SpanKind.SERVER,
            attributes=attributes,
            start_time=end - int(1e9 * seconds),
        )
        for each in _evaluations(loop, answer):
            span.add_event(EVALUATION, each, end)
        if status >= 500:
            span.set_status(self._otel.trace.StatusCode.ERROR)
        span.end(end)

    def close(self) -> None:
        """Send what waits."""
        self._provider.shutdown()


def _evaluations(loop: str | None, answer: Any) -> Iterator[dict[str, Any]]:
    """Return the decisions of an answer, in OpenTelemetry's words for feature flags."""
    if isinstance(answer, m.DecisionResponse):
        arms = [str(each.arm) for each in answer.places or ()] or [str(answer.arm)]
        variant = ", ".join(arms)
        yield _attributes(loop, variant, answer.id, answer.probability, answer.role)
    elif isinstance(answer, m.BatchResponse):
        for entry in answer.decisions:
            yield from _evaluations(loop, entry.decision)
    elif isinstance(answer, m.FlagEvaluation | m.ListedFlag) and answer.metadata:
        told = answer.metadata
        decided = told["decision_id"], told["propensity"], told["role"]
        yield _attributes(answer.key, answer.variant, *decided)
    elif isinstance(answer, m.FlagList):
        for flag in answer.flags:
            yield from _evaluations(flag.key, flag)


def _attributes(flag: Any, variant: Any, id: Any, propensity: Any, role: Any) -> dict[str, Any]:
    return {
        "feature_flag.key": flag,
        "feature_flag.provider.name": "driftbandit",
        "feature_flag.result.variant": str(variant),
        "feature_flag.result.reason": "split" if role in ("active", "holdout") else "default",
        "driftbandit.decision_id": id,
        "driftbandit.propensity": propensity,
        "driftbandit.role": role,
    }


def _opentelemetry() -> Any:
    try:
        import opentelemetry.propagate
        import opentelemetry.trace
    except ImportError:
        raise _missing() from None
    return opentelemetry


def _exporting() -> Any:
    """Return a provider that sends spans in the background."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise _missing() from None
    named = Resource({SERVICE_NAME: "driftbandit"}).merge(OTELResourceDetector().detect())
    made = TracerProvider(resource=named)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return made


def _missing() -> ImportError:
    return ImportError("telemetry needs OpenTelemetry: pip install 'driftbandit[otel]'")
