"""What may go wrong between a client and a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ServiceError(ValueError):
    """What the service refused; `problem` is all that it said."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "the service did not say what is wrong")))
        self.problem, self.status = dict(problem), int(problem.get("status", 0))


class UnreachableError(ConnectionError):
    """The service did not answer in time."""
