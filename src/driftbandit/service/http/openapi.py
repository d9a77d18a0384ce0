"""The OpenAPI document, made from the table of routes and the messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from driftbandit.service.routes import AS_TOML, Route
from driftbandit.service.schema.messages import ProblemDetails

EVERYWHERE = (400, 401, 403, 408, 413, 429, 503)  # whatever is asked, with a key
REF = "#/components/schemas/{name}"
FILES = {
    "file": ("application/jsonl", "application/vnd.apache.parquet"),
    "text": ("text/plain",),
    "stream": ("text/event-stream",),
    "page": ("text/html",),
}
QUERY: dict[str, Any] = {
    "format": {"type": "string", "enum": ["jsonl", "parquet"], "default": "jsonl"},
    "position": {"type": "integer", "minimum": 0, "description": "of a slate"},
    "since": {"type": "number", "description": "seconds since the epoch"},
    "until": {"type": "number", "description": "seconds since the epoch"},
}


def document(routes: Sequence[Route], version: str) -> dict[str, Any]:
    """Return the whole document."""
    messages: set[Any] = {route.failure for route in routes}
    for route in routes:
        messages |= {kind for _, kind in route.answers if not isinstance(kind, str | None)}
        messages |= {route.body} if route.body else set()
    _, schemas = msgspec.json.schema_components(
        sorted(messages, key=lambda kind: kind.__name__), ref_template=REF
    )
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "driftbandit", "version": version},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {"summary": route.summary, "operationId": route.act.__name__}
    made["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)", route.path)
    ] + [{"name": name, "in": "query", "schema": QUERY[name]} for name in route.query]
    if route.body:
        kinds = ["application/json", *(["application/toml"] if route.body in AS_TOML else [])]
        made["requestBody"] = {"required": True, "content": _content(route.body, kinds)}
    made["responses"] = {str(status): _answer(kind) for status, kind in route.answers}
    refusals = (*EVERYWHERE, *route.problems) if route.role else (503,)
    refused = _refusal(route.failure)
    made["responses"] |= {str(status): refused for status in sorted(refusals)}
    if route.role:
        made["security"] = [{"key": []}]
        made["description"] = f"Needs a key with the role {route.role!r}."
    return made


def _answer(kind: Any) -> dict[str, Any]:
    if kind is None:
        return {"description": "As before: the ETag is the one of If-None-Match"}
    if isinstance(kind, str):
        return {"description": "OK", "content": {media: {} for media in FILES[kind]}}
    return {"description": "OK", "content": _content(kind, ["application/json"])}


def _content(kind: Any, medias: list[str]) -> dict[str, Any]:
    return {media: {"schema": {"$ref": REF.format(name=kind.__name__)}} for media in medias}


def _refusal(kind: Any) -> dict[str, Any]:
    media = "application/problem+json" if kind is ProblemDetails else "application/json"
    return {"description": "What is wrong, and the remedy", "content": _content(kind, [media])}
