"""Keys of the service: who may ask for what. Only hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from collections.abc import Iterable
from typing import NamedTuple

from driftbandit.loop.storage.store import connect
from driftbandit.service.http.errors import RefusedError
from driftbandit.validate import show

ROLES = ("decide", "reward", "read", "admin")
FRESH = 1.0  # seconds after which a key that was revoked elsewhere is of no use
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Key(NamedTuple):
    """A key as it is stored; its secret is known to its owner alone."""

    name: str
    roles: tuple[str, ...]
    hash: str
    made: float

    def may(self, role: str) -> bool:
        return role in self.roles or "admin" in self.roles


NOBODY = Key("nobody", (), "0" * 64, 0.0)
ANYBODY = Key("open", ("admin",), "", 0.0)  # of a service that was started with --open


class Keys:
    """The keys of a ledger. A token is NAME.SECRET, and has 256 random bits: a plain hash of
    it tells nothing."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._base = connect(path, write=True)
        self._found: dict[str, Key] = {}
        self._read = -FRESH

    def create(self, name: str, roles: Iterable[str]) -> str:
        """A new key; the token that is returned is not stored and cannot be shown again."""
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
        values = name, " ".join(chosen), _hash(token), time.time()
        self._base.do("INSERT INTO access VALUES (?, ?, ?, ?)", values)
        return token

    def revoke(self, name: str) -> None:
        if not self._base.do("DELETE FROM access WHERE name = ?", (name,)):
            raise ValueError(f"there is no key {name!r}: driftbandit keys list shows them")

    def all(self) -> dict[str, Key]:
        """Keys by name."""
        rows = self._base.ask("SELECT name, roles, hash, made FROM access ORDER BY name", ())
        return {row[0]: Key(row[0], tuple(row[1].split()), row[2], row[3]) for row in rows}

    def check(self, header: str | None, role: str) -> Key:
        """Who asks, by the Authorization header; refused unless the key has the role."""
        kind, _, token = (header or "").partition(" ")
        found = self._now().get(token.partition(".")[0], NOBODY)
        same = hmac.compare_digest(_hash(token), found.hash)  # takes the same time for nobody
        if kind.lower() != "bearer" or not same:
            raise RefusedError(401, "a key is needed: send the header Authorization: Bearer KEY")
        if not found.may(role):
            raise RefusedError(
                403, f"key {found.name!r} does not have the role {role!r}: use another key"
            )
        return found

    def _now(self) -> dict[str, Key]:
        if time.monotonic() - self._read >= FRESH:
            self._found, self._read = self.all(), time.monotonic()
        return self._found

    def close(self) -> None:
        self._base.close()


class OpenDoor:
    """Instead of keys, on one's own machine: everybody may do everything."""

    def check(self, header: str | None, role: str) -> Key:
        return ANYBODY

    def close(self) -> None:
        """Nothing is open."""


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
