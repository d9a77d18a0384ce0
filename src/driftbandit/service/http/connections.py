"""Connections: their slots, and time limits on what clients send and read.

A client that has shown no API key may hold a connection only while there is room. If there is none,
the oldest of these is closed for a new one; if all have shown a key, one of the key that has most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = 16_384  # bytes of a request's head
FIRST = 10.0  # seconds for it to arrive
BODY = 40.0  # seconds for a body, if the answer did not wait for it
UNREAD = 20.0  # seconds that a client may leave an answer unread
LOOK = 5.0  # seconds from one look at these times to the next
PIPELINED = 64  # requests that wait on one connection
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


class JoinedWrites:
    """A transport that sends all writes of one step of the event loop at once: head and body of an
    answer are one system call, and one packet."""

    def __init__(self, transport: Any, call_soon: Callable[..., Any]) -> None:
        self._transport, self._call_soon = transport, call_soon
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():  # it may have been cut off meanwhile
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Slots:
    """All connections of a server, `most` of them at once."""

    def __init__(self, most: int) -> None:
        self._most, self._used = most, 0
        self._strangers: dict[BoundedProtocol, None] = {}  # have shown no key; the oldest first
        self._known: dict[str, dict[BoundedProtocol, None]] = {}  # by key

    def add(self, new: BoundedProtocol) -> None:
        """Give a new connection a slot; another one is closed if there is none."""
        self._strangers[new] = None
        self._used += 1
        if self._used > self._most:
            of = self._strangers
            if len(of) == 1:  # the new one
                of = max(self._known.values(), key=len)
            self.remove(closed := next(iter(of)))
            closed.abort()

    def admit(self, connection: BoundedProtocol, key: str) -> None:
        """Note that a connection has shown a key."""
        if connection in self._strangers or connection in self._known.get(connection.key, ()):
            self._forget(connection)
            connection.key = key
            self._known.setdefault(key, {})[connection] = None

    def remove(self, connection: BoundedProtocol) -> None:
        if self._forget(connection):
            self._used -= 1

    def _forget(self, connection: BoundedProtocol) -> bool:
        of = self._known.get(connection.key, {}) if connection.key else self._strangers
        found = connection in of
        of.pop(connection, None)
        if connection.key and not of:
            self._known.pop(connection.key, None)
        return found


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections whose client sends the head of a request too slowly, or a very long one,
    sends too many requests at once, or does not read its answers."""

    def __init__(self, slots: Slots, **options: Any) -> None:
        super().__init__(**options)
        self._slots, self.key = slots, ""  # the API key that it has shown

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoinedWrites(transport, self.loop.call_soon))  # type: ignore[arg-type]
        self._size = 0  # bytes of a head that is not complete
        self._refusal = b""
        now = self.loop.time()
        self._head: float | None = now  # when a head began that is not complete
        self._body: float | None = None  # when a body began that is not complete
        self._unread: float | None = None  # since when the client has not read
        self._timer = self.loop.call_later(LOOK, self._look)
        self._slots.add(self)

    def admit(self, key: str) -> None:
        """Note that the client has shown a key."""
        if key != self.key:
            self._slots.admit(self, key)

    def abort(self) -> None:
        """Close the connection at once; what was not read is dropped."""
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.parser is None or self.transport.is_closing():
            return  # closed meanwhile
        super().data_received(data)
        self._size = 0 if self._head is None else self._size + len(data)
        if self._size > HEAD and not self.transport.is_closing():
            self.transport.write(LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED:
            raise ValueError("too many requests at once")  # the parser stops, and answers 400
        if self._head is None:
            self._head = self.loop.time()
        self._long = 0  # bytes of this head
        super().on_message_begin()
        self.scope["connection"] = self  # type: ignore[typeddict-unknown-key]

    def on_url(self, url: bytes) -> None:
        self._measure(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._measure(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _measure(self, more: int) -> None:
        self._long += more
        if self._long > HEAD:
            self._refusal = LARGE
            raise ValueError("the head is too long")

    def send_400_response(self, msg: str) -> None:
        if not self._refusal:
            super().send_400_response(msg)
            return
        self.transport.write(self._refusal)
        self.transport.close()

    def on_headers_complete(self) -> None:
        self._head, self._body = None, self.loop.time()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._body = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._unread = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._slots.remove(self)
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close the connection if its client is late; one timer serves all its requests."""
        now, transport = self.loop.time(), self.transport
        if transport.is_closing() and self._unread is None:
            self._unread = now  # what was answered last
        self._timer = self.loop.call_later(LOOK, self._look)
        if self._unread is not None and now - self._unread >= UNREAD:
            self.abort()
        elif transport.is_closing():
            return
        elif _late(self._head, now, FIRST) or _late(self._body, now, BODY):
            transport.close()


def _late(since: float | None, now: float, seconds: float) -> bool:
    return since is not None and now - since >= seconds
