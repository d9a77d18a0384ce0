"""Free space of an SQLite file: found and overwritten with zeros, some pages at a time.

SQLite overwrites what is deleted (`secure_delete`), but where it moves rows between pages, the free
part of a page keeps what was there. Rewriting the whole file (VACUUM) removes that, and stops every
decision meanwhile. So this overwrites only the bytes that belong to nothing: of a page of a table
or an index, all that is neither its header nor one of its cells; and all of a free page.

The file's format is described at sqlite.org/fileformat2.html. Nothing that SQLite reads changes, so
readers may go on. The caller keeps writers away, and makes sure that the write-ahead log is empty:
only then is the file all there is. It changes something before writers come back, so that their
connections let go of the pages that they have in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from struct import unpack_from
from typing import NamedTuple

from driftbandit.loop.errors import LedgerError

INDEX, TABLE, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13  # kinds of pages
HEAD = 100  # bytes of the file's header, on the first page
LOCKED = 0x40000000  # the byte whose page SQLite never uses

Range = tuple[int, int]


class PageFile(NamedTuple):
    """A file of pages, of which `usable` bytes each hold content."""

    descriptor: int
    size: int
    usable: int
    pages: int

    @staticmethod
    def of(descriptor: int) -> PageFile:
        head = os.pread(descriptor, HEAD, 0)
        (size,) = unpack_from(">H", head, 16)
        size = 65536 if size == 1 else size
        return PageFile(descriptor, size, size - head[20], os.fstat(descriptor).st_size // size)

    def page(self, number: int) -> bytes:
        return os.pread(self.descriptor, self.size, (number - 1) * self.size)

    def free(self, number: int, unused: Mapping[int, int]) -> list[Range]:
        """Return the parts of a page that belong to nothing and are not zero."""
        page = self.page(number)
        if number in unused:
            found: Iterable[Range] = [(unused[number], self.size)]
        elif number == LOCKED // self.size + 1:
            found = ()
        else:
            found = free_ranges(page, self.usable, HEAD if number == 1 else 0)
        return [(a, b) for a, b in found if page[a:b].count(0) != b - a]

    def unused(self) -> dict[int, int]:
        """Return the free pages, and from which byte on they hold nothing: some list the others."""
        trunk, found = unpack_from(">I", os.pread(self.descriptor, HEAD, 0), 32)[0], {}
        while trunk:
            page = self.page(trunk)
            following, count = unpack_from(">II", page)
            found[trunk] = 8 + 4 * count
            found.update(dict.fromkeys(unpack_from(f">{count}I", page, 8), 0))
            trunk = following
        return found

    def overwrite(self, number: int, unused: Mapping[int, int]) -> None:
        """Write zeros over the free parts of a page."""
        for a, b in self.free(number, unused):
            os.pwrite(self.descriptor, bytes(b - a), (number - 1) * self.size + a)


def free_ranges(page: bytes, usable: int, start: int = 0) -> Iterator[Range]:
    """Yield what is neither header nor cell of a page of a table or index, whose header begins at
    `start`. The first four bytes of a free block are kept: they say where the next one is."""
    kind = page[start]
    if kind not in (INDEX, TABLE, INDEX_LEAF, TABLE_LEAF):
        return  # the rest of a long row, which begins with the number of its next page
    block, cells = unpack_from(">HH", page, start + 1)
    begin = start + (12 if kind in (INDEX, TABLE) else 8)
    places = unpack_from(f">{cells}H", page, begin)
    used = [(each, each + max(4, _cell(page, each, kind, usable))) for each in places]
    while block:
        used.append((block, block + 4))
        (block,) = unpack_from(">H", page, block)
    end = begin + 2 * cells
    for a, b in sorted(used):
        if a < end or b > usable:
            raise LedgerError("a page of the file is damaged: restore the ledger from a copy")
        if a > end:
            yield end, a
        end = b
    if usable > end:
        yield end, usable


def _cell(page: bytes, place: int, kind: int, usable: int) -> int:
    """Return the size of a cell on its page."""
    at = place + (4 if kind in (INDEX, TABLE) else 0)
    payload, at = _varint(page, at)
    if kind == TABLE:
        return at - place
    if kind == TABLE_LEAF:
        _, at = _varint(page, at)
    most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if payload <= most:
        return at - place + payload
    least = (usable - 12) * 32 // 255 - 23
    local = least + (payload - least) % (usable - 4)
    return at - place + (local if local <= most else least) + 4  # and where the rest is


def _varint(page: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(8):
        byte = page[at + k]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + k + 1
    return value << 8 | page[at + 8], at + 9
