"""Which hosts and web pages may use a service without keys.

A browser sends requests to this machine for any page that its user visits. Two headers tell them
apart: `Host` is the name that the browser looked up, which is foreign if a page has pointed its own
name at this machine (DNS rebinding); `Origin` is the page that asks, which is foreign if a page
sends requests to this machine's name (cross-site request forgery).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from driftbandit.service.errors import RefusedError
from driftbandit.validate import show

REMEDY = "ask for localhost or 127.0.0.1, or start the service with --allow-host NAME"
ELSEWHERE = (b"cross-site", b"same-site")  # what browsers say of a page from another server
FOLLOWED = b"navigate"  # and of a link that the user has followed: the other page reads nothing


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine, and no other server can answer to it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HostCheck:
    """Refuses requests for names that are neither allowed nor this machine, and requests that a
    browser sends for a page of another server."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(name.lower() for name in allowed)

    def check(self, head: Mapping[bytes, bytes]) -> None:
        """Raise unless Host and Origin are allowed."""
        host = head.get(b"host", b"").decode("latin-1")
        if not self._allows(host):
            raise RefusedError(403, f"this service does not answer to Host {show(host)}: {REMEDY}")
        origin = head.get(b"origin")
        if origin is not None:
            self._check_origin(origin.decode("latin-1"), host)
        elif head.get(b"sec-fetch-site") in ELSEWHERE and head.get(b"sec-fetch-mode") != FOLLOWED:
            raise RefusedError(403, f"a page of another server asks: {REMEDY}")

    def _allows(self, host: str) -> bool:
        name = _name(host)
        return name in self._allowed or is_loopback(name)

    def _check_origin(self, origin: str, host: str) -> None:
        page = origin.partition("://")[2]
        if page.lower() != host.lower() and _name(page) not in self._allowed:
            raise RefusedError(403, f"a page of {show(origin)} asks, not this service's: {REMEDY}")


def _name(host: str) -> str:
    """Return a host without its port, in small letters; "" if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
