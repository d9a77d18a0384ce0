"""A PostgreSQL database of ledgers; `advisory` says who may write."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from driftbandit.loop.storage.advisory import PLACE, Advisory
from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.storage.migrations import migrations

try:
    import psycopg
except ImportError:
    raise ImportError(
        "a ledger in PostgreSQL needs psycopg: pip install 'driftbandit[postgres]'"
    ) from None

COUNTED = "CREATE TABLE driftbandit_migration (step INTEGER PRIMARY KEY)"
PATIENCE = 10  # seconds to wait for a connection
# PostgreSQL lets go who does not answer, and who has its turn and does not go on.
WATCHED = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
TURN = "5s"
ALIVE: dict[str, Any]  # and so do we
ALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}


class Postgres:
    """What PostgreSQL raises becomes a `LedgerError` that names the database and the remedy."""

    def __init__(self, url: str, *, write: bool) -> None:
        self._url = url
        self.path = _without_password(url)
        self._turn = threading.Lock()  # readers share one connection
        with self.told():
            self._writer = self._connect()
            try:
                self._migrate(write)
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise

    def _connect(self) -> Any:
        options = f"{WATCHED} -c idle_in_transaction_session_timeout={TURN}"
        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=PATIENCE, options=options, **ALIVE
        )

    def _migrate(self, write: bool) -> None:
        """Bring the tables up to date, one numbered step after the other, one process at a time."""
        steps = migrations("postgres")
        with self._writer.transaction():
            self._writer.execute("SELECT pg_advisory_xact_lock(%s, 0)", (PLACE,))
            had = self._had()
            if had > len(steps):
                raise LedgerError(
                    f"{self.path!r} was written by a newer version: upgrade driftbandit"
                )
            if had == 0 and not write:
                raise LedgerError(f"{self.path!r} holds no loops: name another database")
            if write and had == 0:
                self._writer.execute(COUNTED)
            for k, step in enumerate(steps[had:] if write else (), start=had + 1):
                self._writer.execute(step)
                self._writer.execute("INSERT INTO driftbandit_migration VALUES (%s)", (k,))

    def _had(self) -> int:
        """How many steps the database has had."""
        found = "SELECT to_regclass('driftbandit_migration') IS NOT NULL"
        if not self._writer.execute(found).fetchone()[0]:
            return 0
        count = "SELECT max(step) FROM driftbandit_migration"
        return int(self._writer.execute(count).fetchone()[0])

    def ask(self, query: str, values: Sequence[Any]) -> list[Any]:
        """All rows of an answer."""
        with self.told(), self._turn:
            if self._reader.closed:  # readers hold nothing: they may come back
                self._reader = self._connect()
            return list(self._reader.execute(_marked(query), values).fetchall())

    def own(self, query: str, values: Sequence[Any]) -> list[Any]:
        """The same over the connection that writes, and holds the locks."""
        with self.told():
            return list(self._writer.execute(_marked(query), values).fetchall())

    def do(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run one statement, which says how many rows it changed."""
        with self.told():
            return int(self._writer.execute(_marked(statement), values).rowcount)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside, or nothing."""
        with self.told(), self._writer.transaction():
            yield

    def lock(self, name: str, *, alone: bool) -> Advisory:
        """A place among those who write to this loop, or the only one."""
        return Advisory(self, name, alone)

    def purge(self) -> None:
        """What was erased leaves the table; PostgreSQL's own log follows as it is recycled."""
        self.do("VACUUM event")

    def close(self) -> None:
        self._reader.close()
        with suppress(psycopg.Error):  # so that others need not wait for the connection to end
            self._writer.execute("SELECT pg_advisory_unlock_all()")
        self._writer.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise LedgerError(f"ledger {self.path!r}: {first}; {_remedy(error)}") from None


def _marked(statement: str) -> str:
    """Placeholders as psycopg has them; no statement of ours has a ? or % of its own."""
    return statement.replace("?", "%s")


def _without_password(url: str) -> str:
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        raise LedgerError(
            "this is not the address of a database; one looks like postgresql://user@host:5432/name"
        ) from None
    host = f"{parts.get('host', '')}:{parts.get('port', '5432')}"
    return f"postgresql://{host}/{parts.get('dbname', '')}"


def _remedy(error: Exception) -> str:
    if isinstance(error, psycopg.errors.DiskFull):
        return "make room on the disk and open the loop again"
    if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        return "this process stood still while others waited: open the loop again"
    if isinstance(error, psycopg.OperationalError):
        return "the database must run and let us in: open the loop again once it does"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "the user must be allowed to make tables"
    return "the tables are damaged or something else: restore them from a copy"
