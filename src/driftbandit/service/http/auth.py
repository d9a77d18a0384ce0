"""API keys: which requests a program may send. The ledger stores hashes of keys only."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from driftbandit.loop.storage.store import connect
from driftbandit.service.errors import LedgerError, RefusedError
from driftbandit.validate import show

log = logging.getLogger("driftbandit.service")
ROLES = ("decide", "reward", "read", "admin")
REFRESH = 0.5  # seconds from one look at the stored keys to the next
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class ApiKey(NamedTuple):
    """A key as it is stored; its secret is known to its owner alone."""

    name: str
    roles: tuple[str, ...]
    hash: str
    made: float

    def may(self, role: str) -> bool:
        return role in self.roles or "admin" in self.roles


UNKNOWN = ApiKey("unknown", (), "0" * 64, 0.0)
ANONYMOUS = ApiKey("open", ("admin",), "", 0.0)  # of a service that was started with --open


class ApiKeys:
    """The keys of a ledger. A token is NAME.SECRET, and has 256 random bits: a plain hash of
    it tells nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store = connect(path, write=True)

    def create(self, name: str, roles: Iterable[str]) -> str:
        """Return the token of a new key; it is not stored and cannot be shown again."""
        chosen = tuple(dict.fromkeys(roles))
        if not NAME.fullmatch(name):
            raise ValueError(
                f"a key's name is up to 40 letters, digits, '_' and '-', got {show(name)}"
            )
        if not chosen or not set(chosen) <= set(ROLES):
            raise ValueError(f"roles are some of {', '.join(ROLES)}, got {show(list(chosen))}")
        if name in self.all():
            raise ValueError(f"there is a key {name!r} already: revoke it, or use another name")
        token = f"{name}.{secrets.token_urlsafe(32)}"
        roles_text, made = " ".join(chosen), time.time()
        self._store.run("new_api_key", name, roles_text, _hash(token), made)
        return token

    def revoke(self, name: str) -> None:
        if not self._store.run("delete_api_key", name):
            raise ValueError(f"there is no key {name!r}: driftbandit api-keys list shows them")

    def all(self) -> dict[str, ApiKey]:
        """Return keys by name."""
        rows = self._store.ask("api_keys")
        return {row[0]: ApiKey(row[0], tuple(row[1].split()), row[2], row[3]) for row in rows}

    def close(self) -> None:
        self._store.close()


class Authenticator(Protocol):
    """Decides which requests are let in; called on the event loop, so it never waits."""

    def check(self, header: str | None, role: str) -> ApiKey: ...
    def close(self) -> None: ...


class KeyAuthenticator:
    """Checks requests against the stored keys, which a thread of its own reads twice per second.
    While the database does not answer, the keys that were read last stay valid."""

    def __init__(self, keys: ApiKeys) -> None:
        self._keys, self._known = keys, keys.all()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="driftbandit keys", daemon=True)
        self._thread.start()

    def check(self, header: str | None, role: str) -> ApiKey:
        """Return the key in the Authorization header; refuse it unless it has the role."""
        kind, _, token = (header or "").partition(" ")
        found = self._known.get(token.partition(".")[0], UNKNOWN)
        same = hmac.compare_digest(_hash(token), found.hash)  # as long for an unknown name
        if kind.lower() != "bearer" or not same:
            raise RefusedError(401, "a key is needed: send the header Authorization: Bearer KEY")
        if not found.may(role):
            raise RefusedError(
                403, f"key {found.name!r} does not have the role {role!r}: use another key"
            )
        return found

    def _refresh(self) -> None:
        while not self._closed.wait(REFRESH):
            try:
                self._known = self._keys.all()
            except LedgerError as error:
                log.warning("API keys cannot be read, the last ones stay valid: %s", error)

    def close(self) -> None:
        """Stop reading; a database that does not answer is not waited for."""
        self._closed.set()
        self._thread.join(timeout=2 * REFRESH)
        if not self._thread.is_alive():
            self._keys.close()


class OpenAccess:
    """Lets every request in, without a key; for services on one's own machine."""

    def check(self, header: str | None, role: str) -> ApiKey:
        return ANONYMOUS

    def close(self) -> None:
        """Do nothing: there is no store."""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
