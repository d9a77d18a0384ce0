"""Some learners of DOMD's larger memory, as `Fleet` asks for them: in batches, on all cores.

The memory may be in single precision. Arithmetic is double: a row is widened into `one`, and
written back by `keep`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from driftbandit.compiled import borrow, kernel
from driftbandit.policies.mirror import Memory, Work, borrowed, borrowed_work, unpack, work_for
from driftbandit.policies.mirror import choose as choose_one
from driftbandit.policies.mirror import learn as learn_one
from driftbandit.policies.policy import Floats, Ints
from driftbandit.ranking import Size, size_of_rows
from driftbandit.threads import parts_of, spread

ROUND_UP = 1.0 + 2.0**-23  # v times it, rounded to single precision, is v or more


class Room(NamedTuple):
    """What a thread works with: a learner and its scratch."""

    theta: Floats  # (1, d)
    H: Floats  # (1, d, d)
    t: Ints  # (1,)
    work: Work


def room_for(d: int) -> Room:
    one = np.empty((1, d)), np.empty((1, d, d)), np.empty(1, dtype=np.int64)
    return Room(*one, work_for(d))


@kernel
def learner_in(room: Room) -> Memory:
    return Memory(borrow(room.theta), borrow(room.H), borrow(room.t))


@kernel
def widen(s: Memory, i: int, one: Memory) -> None:
    """one = row i."""
    theta, H, d = s.theta[i], s.H[i], s.theta.shape[1]
    for j in range(d):
        one.theta[0, j] = theta[j]
        for k in range(d):
            one.H[0, j, k] = H[j, k]
    one.t[0] = s.t[i]


@kernel
def keep(S: float, one: Memory, s: Memory, i: int) -> None:
    """Write `one` into row i; rounding never breaks H >= lambda I nor ||theta|| <= S.

    What rounding takes from the entries beside the diagonal goes on top of the diagonal, which
    is rounded up: the difference is diagonally dominant. In double precision it is zero.
    """
    theta, H, d = s.theta[i], s.H[i], s.theta.shape[1]
    size = 0.0
    for j in range(d):
        lost = 0.0
        for k in range(d):
            H[j, k] = one.H[0, j, k]
            if k != j:
                lost += abs(H[j, k] - one.H[0, j, k])
        least = one.H[0, j, j] + lost
        H[j, j] = least
        if H[j, j] < least:
            H[j, j] = least * ROUND_UP
        theta[j] = one.theta[0, j]
        size += float(theta[j]) * float(theta[j])
    if size > S * S:  # so it was not before it was rounded
        for j in range(d):
            theta[j] = one.theta[0, j] / ROUND_UP
    s.t[i] = one.t[0]


@partial(kernel, nogil=True)
def choose_double(
    size: Size,
    q: Floats,
    s: Memory,
    rows: Ints,
    arms: Floats,
    limit: float,
    span: Ints,
    room: Room,
    out: Ints,
) -> None:
    """The choices from span[0] to span[1] of the batch."""
    p, s, arms, work = unpack(q), borrowed(s), borrow(arms), borrowed_work(room.work)
    shared = len(arms) == 1
    for b in range(span[0], span[1]):
        out[b] = choose_one(size, p, s, rows[b], arms[0 if shared else b], limit, work)


@partial(kernel, nogil=True)
def choose_single(
    size: Size,
    q: Floats,
    s: Memory,
    rows: Ints,
    arms: Floats,
    limit: float,
    span: Ints,
    room: Room,
    out: Ints,
) -> None:
    """The same where the memory is in single precision."""
    p, s, one, work = unpack(q), borrowed(s), learner_in(room), borrowed_work(room.work)
    arms = borrow(arms)
    shared = len(arms) == 1
    for b in range(span[0], span[1]):
        widen(s, rows[b], one)
        out[b] = choose_one(size, p, one, 0, arms[0 if shared else b], limit, work)


@kernel
def mine(row: int, share: Ints) -> bool:
    """Whether a row is this thread's, share[0] of share[1].

    Blocks of 64 neighbours belong to one thread: nobody waits for another's cache lines, and a
    learner that comes twice is taught in order.
    """
    return (row >> 6) % share[1] == share[0]


@partial(kernel, nogil=True)
def learn_double(
    q: Floats, s: Memory, rows: Ints, x: Floats, r: Floats, share: Ints, room: Room
) -> None:
    """Teach the learners that are this thread's, in the batch's order."""
    p, s, x, work = unpack(q), borrowed(s), borrow(x), borrowed_work(room.work)
    for b in range(len(rows)):
        if mine(rows[b], share):
            learn_one(p, s, rows[b], x[b], r[b], work)


@partial(kernel, nogil=True)
def learn_single(
    q: Floats, s: Memory, rows: Ints, x: Floats, r: Floats, share: Ints, room: Room
) -> None:
    """The same where the memory is in single precision."""
    p, s, one, x = unpack(q), borrowed(s), learner_in(room), borrow(x)
    work = borrowed_work(room.work)
    for b in range(len(rows)):
        if mine(rows[b], share):
            widen(s, rows[b], one)
            learn_one(p, one, 0, x[b], r[b], work)
            keep(p.S, one, s, rows[b])


@kernel
def keep_all(S: float, memory: Memory, s: Memory) -> None:
    for i in range(len(s.t)):
        one = Memory(memory.theta[i : i + 1], memory.H[i : i + 1], memory.t[i : i + 1])
        keep(S, one, s, i)


def choose(q: Floats, memory: Memory, rows: Ints, arms: Floats, limit: float) -> Ints:
    """The choices of these rows, (B,), of arms (B, N, d) or (1, N, d)."""
    out, parts = np.empty(len(rows), dtype=np.int64), parts_of(len(rows))
    ends = np.linspace(0, len(rows), parts + 1).astype(np.int64)
    ask = choose_double if memory.H.dtype == np.float64 else choose_single

    def work(part: int) -> None:
        d = arms.shape[2]
        span, room = ends[part : part + 2], room_for(d)
        ask(size_of_rows(d), q, memory, rows, arms, limit, span, room, out)

    spread(work, parts)
    return out


def learn(q: Floats, memory: Memory, rows: Ints, x: Floats, r: Floats) -> None:
    """Teach these rows."""
    parts = parts_of(len(rows))
    teach = learn_double if memory.H.dtype == np.float64 else learn_single

    def work(part: int) -> None:
        teach(q, memory, rows, x, r, np.array([part, parts]), room_for(x.shape[1]))

    spread(work, parts)


def narrow(S: float, memory: Memory) -> Memory:
    """The memory in single precision."""
    theta, H, t = memory
    small = Memory(theta.astype(np.float32), H.astype(np.float32), t.copy())
    keep_all(S, memory, small)
    return small
