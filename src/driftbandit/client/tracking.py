"""Rewards for OpenFeature, whose protocol has none: `track` of an OpenFeature client sends them.

A hook remembers the decision of every evaluation by flag and targeting key. A tracked event becomes
the reward of the latest decision of its flags for that targeting key.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandit.client.client import Client, ServiceError, UnreachableError

log = logging.getLogger("driftbandit.client")
MOST = 10_000  # decisions that are remembered; beyond, those that were used longest ago are not


def track_rewards(
    provider: Any,
    url: str,
    events: Mapping[str, str | Sequence[str]],
    *,
    api_key: str | None = None,
    timeout: float = 2.0,
) -> Any:
    """Return an OpenFeature provider whose `track` sends rewards to a decision service.

    `events` are the flags, or lists of flags, that a tracked event is a reward of, such as
    {"purchase": "banner"}. The reward is the event's value, or 1 if it has none.
    """
    named = {event: [one] if isinstance(one, str) else [*one] for event, one in events.items()}
    flags = {flag for each in named.values() for flag in each}
    clients = {flag: Client(url, flag, api_key=api_key, timeout=timeout) for flag in flags}
    tracking = Tracking(named, clients)
    hooks, shutdown = provider.get_provider_hooks, provider.shutdown

    def closed() -> None:
        for client in clients.values():
            client.close()
        shutdown()

    provider.get_provider_hooks = lambda: [*hooks(), tracking]
    provider.track, provider.shutdown = tracking.track, closed
    return provider


class Tracking:
    """A hook of OpenFeature, and the `track` of a provider."""

    def __init__(self, events: Mapping[str, list[str]], clients: Mapping[str, Client]) -> None:
        self._events, self._clients = events, clients
        self._decisions: OrderedDict[tuple[str, str | None], str] = OrderedDict()
        self._lock = threading.Lock()

    def after(self, hook_context: Any, details: Any, hints: Any) -> None:
        """Remember the decision of an evaluation."""
        flag, id = hook_context.flag_key, details.flag_metadata.get("decision_id")
        if id is None or flag not in self._clients:
            return
        own = flag, _key(hook_context.evaluation_context)
        with self._lock:
            self._decisions[own] = id
            self._decisions.move_to_end(own)
            if len(self._decisions) > MOST:
                self._decisions.popitem(last=False)

    def track(self, name: str, context: Any = None, details: Any = None) -> None:
        """Send the reward of an event; what cannot be sent is logged, not raised."""
        value = getattr(details, "value", None)
        for flag in self._events.get(name, ()):
            id = self._decisions.get((flag, _key(context)))
            if id is None:
                log.warning("%s is no reward: %s was not evaluated for this key", name, flag)
                continue
            try:
                self._clients[flag].reward(id, 1.0 if value is None else value)
            except (ServiceError, UnreachableError) as error:
                log.warning("the reward of decision %s is lost: %s", id, error)

    def before(self, hook_context: Any, hints: Any) -> None:
        """Change nothing."""

    def error(self, hook_context: Any, exception: Exception, hints: Any) -> None:
        """Remember nothing: there was no decision."""

    def finally_after(self, hook_context: Any, details: Any, hints: Any) -> None:
        """Do nothing more."""

    def supports_flag_value_type(self, flag_type: Any) -> bool:
        """Return True: flags of all types are decisions."""
        return True


def _key(context: Any) -> str | None:
    return None if context is None else context.targeting_key
