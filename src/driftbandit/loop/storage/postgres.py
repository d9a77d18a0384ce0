"""A PostgreSQL database of ledgers: its tables, connections, and who may write and train.

Every process that writes to a loop holds a shared advisory lock, or an exclusive one if it wants
the loop to itself. One of them also holds the trainer's lock. Both belong to the connection that
writes: a process that loses its connection cannot write, so two processes can never train the same
loop, even during a network partition. PostgreSQL frees the locks when a process dies, and another
process takes over training.

Writers take turns: the process that has locked the row of the loop reads what others have stored,
and goes on from there. So events have one order without a gap, the order of their commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.midst import Midst
from driftbandit.loop.storage.sql import migrations, queries

try:
    import psycopg
except ImportError:
    raise ImportError(
        "a ledger in PostgreSQL needs psycopg: pip install 'driftbandit[postgres]'"
    ) from None

WRITERS = 0x64726966  # "drif": the first half of our locks; the other half is the loop
TRAINER = WRITERS + 1
ROW = "(%s,%s,%s,%s,%s,%s,%s,%s,%s,%s)"
COUNTED = "CREATE TABLE driftbandit_migration (step INTEGER PRIMARY KEY)"
TABLES = "event", "key_row"  # that name keys
FILES = 1 << 32  # the numbers of their files stand in one: see `set_unpurged`
REWRITTEN = 64_000_000  # bytes of a table that is rewritten while decisions wait
PATIENCE = 10  # seconds to wait for a connection
# PostgreSQL closes connections that do not answer, or that keep a turn for too long.
WATCHED = "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3"
TURN = "5s"
ALIVE: dict[str, Any]  # and so does this end
ALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}


class Postgres:
    """A store in a database. What PostgreSQL raises becomes a `LedgerError` that names the
    database and the remedy."""

    def __init__(self, url: str, *, write: bool) -> None:
        self._url = url
        self.path = _without_password(url)
        self._queries = queries("postgres")
        self._reading, self._midst = threading.Lock(), Midst()  # readers share one connection
        with self._translated():
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
            self._writer.execute("SELECT pg_advisory_xact_lock(%s, 0)", (WRITERS,))
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
        """Return how many steps the database has had."""
        found = "SELECT to_regclass('driftbandit_migration') IS NOT NULL"
        if not self._writer.execute(found).fetchone()[0]:
            return 0
        count = "SELECT max(step) FROM driftbandit_migration"
        return int(self._writer.execute(count).fetchone()[0])

    def ask(self, query: str, *values: Any) -> list[Any]:
        self._midst.check()
        with self._translated(), self._midst, self._reading:
            if self._reader.closed:  # readers hold nothing: they may come back
                self._reader = self._connect()
            return list(self._reader.execute(self._queries[query], values).fetchall())

    def ask_writer(self, query: str, *values: Any) -> list[Any]:
        """Return all rows, over the connection that writes and holds the locks."""
        with self._translated():
            return list(self._writer.execute(self._queries[query], values).fetchall())

    def run(self, query: str, *values: Any) -> int:
        with self._translated():
            return int(self._writer.execute(self._queries[query], values).rowcount)

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            with self._translated(), self._writer.cursor() as cursor:
                cursor.executemany(self._queries[query], rows)

    def insert(self, rows: int, values: Sequence[Any]) -> None:
        marks = ",".join([ROW] * rows)
        with self._translated():
            self._writer.execute(f"{self._queries['insert_events']} {marks}", values)

    def many(self, values: Sequence[int]) -> list[int]:
        return list(values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translated(), self._writer.transaction():
            yield

    def check_place(self) -> None:
        """Do nothing: a database does not move while a connection is open."""

    def lock(self, name: str, *, alone: bool) -> AdvisoryLock:
        """Join the processes that write to this loop, or be the only one."""
        return AdvisoryLock(self, name, alone)

    def purge(self, unpurged: int, ended: Callable[[], bool]) -> str:
        """Rewrite the tables, because PostgreSQL only marks the rows that an update replaces as
        free space. That locks a table, so it is done for tables that take about a second; larger
        ones are left to VACUUM FULL in a quiet hour, which is noticed by the table's new file."""
        with self._translated(), self._connect() as base:
            for table, file in zip(TABLES, divmod(unpurged, FILES)):
                if left := self._rewritten(base, table, file):
                    return left
        return ""

    def _rewritten(self, base: Any, table: str, file: int) -> str:
        now, size = base.execute(self._queries["table_file"], (table, table)).fetchone()
        if now != file:
            return ""
        if size > REWRITTEN:
            return (
                f"the table has {size / 1e6:.0f} MB, and to rewrite it would stop decisions: "
                f"run VACUUM FULL {table} in a quiet hour; until then its free space has copies"
            )
        (next_one,) = base.execute(self._queries["next_transaction"]).fetchone()
        if old := base.execute(self._queries["older_readers"], (next_one, next_one)).fetchone():
            return f"session {old[0]} of the database may still read what was erased"
        base.execute("SET lock_timeout = '100ms'")
        try:
            base.execute(f"VACUUM FULL {table}")
        except psycopg.errors.LockNotAvailable:
            return "other sessions use the table"
        return ""

    def close(self) -> None:
        self._reader.close()
        with suppress(psycopg.Error):  # so that others need not wait for the connection to end
            self._writer.execute("SELECT pg_advisory_unlock_all()")
        self._writer.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise LedgerError(f"ledger {self.path!r}: {first}; {_remedy(error)}") from None


class AdvisoryLock:
    """Locks that live as long as the connection that writes."""

    def __init__(self, store: Postgres, name: str, alone: bool) -> None:
        self._store, self._name = store, name
        self.alone, self.trains = alone, False
        if not self._try("lock_alone" if alone else "lock_shared", WRITERS):
            raise LedgerError(
                f"loop {name!r} of {store.path!r} is open already: close it there, or give this "
                "one another name"
            )
        self.take_over()

    def take_over(self) -> None:
        if not self.trains:
            self.trains = self.alone or self._try("lock_alone", TRAINER)

    def followed(self) -> bool:
        return bool(self._store.ask("count_locks", WRITERS, self._name)[0][0] > 1)

    def read(self, query: str, *values: Any) -> list[Any]:
        return [] if self.alone else self._store.ask_writer(query, *values)

    @contextmanager
    def turn(self, query: str, *values: Any, long: bool) -> Iterator[list[Any]]:
        if self.alone:
            yield []
            return
        with self._store.transaction():
            if long:
                self._store.run("no_time_limit")
            self._store.ask_writer("take_turn", self._name)
            yield self.read(query, *values)

    def release(self) -> None:
        """Do nothing: the locks go with the connection, which the store closes."""

    def _try(self, query: str, half: int) -> bool:
        return bool(self._store.ask_writer(query, half, self._name)[0][0])


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
        return "the database is unreachable or refused the login: open the loop again later"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "the user must be allowed to make tables"
    return "unexpected database error; restore a backup only if the tables are damaged"
