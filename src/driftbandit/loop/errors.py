"""Errors of a loop. Each is a ValueError whose text names the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class LedgerError(ValueError):
    """The ledger cannot be read or written: the remedy is outside the program."""


WRONG = (
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    StopIteration,
)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what goes wrong while something stored is read into a `LedgerError`."""
    try:
        yield
    except LedgerError:
        raise
    except WRONG as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise LedgerError(
            f"{what} cannot be read ({why}): restore the ledger from a copy if it is damaged"
        ) from error


class ReplacedError(LedgerError):
    """A newer checkpoint has taken the place of the one that was read."""


class ConflictError(ValueError):
    """The loop does not allow this as it stands now. If evidence is missing, `leads` are what is
    known about the two policies."""

    def __init__(self, words: str, leads: Sequence[Any] = ()) -> None:
        super().__init__(words)
        self.leads = leads


class UsedIdError(ValueError):
    """An id that belongs to another decision."""


class BusyError(ValueError):
    """The same call works later."""


class UnfinishedErasureError(BusyError):
    """The log has nothing of the key any more, but the database has copies, which the loop removes
    as soon as it can."""


class UnknownCandidateError(ValueError):
    """The loop has no such candidate."""


class UnknownArmError(ValueError):
    """The catalogue of the loop has no such arm."""
