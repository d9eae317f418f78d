"""An answer on its way: the head is in hand, the body is read, iterated or pushed.

Whoever owns the socket puts bytes in with `arrive` and ends with `fail` or a last `arrive`;
whoever asked takes them out in one of three ways. Knows no sockets and keeps no time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.providers.coding import Unpacker, unpacker
from understudy.providers.trouble import TooLarge

# (data, False): more will come. (data, True): the end, perhaps with b"". (None, True): broken
# off, and `answer.error` says why. After a True it is not called again.
Sink = Callable[[bytes | None, bool], None]

HIGH_WATER = 256 * 1024  # bytes nobody took yet; above it the source is asked to stop reading
LEFTOVER = 16 * 1024  # bytes and
LINGER = 1.0  # seconds that the end of an answer may still take once nobody reads it


class CutShort(asyncio.CancelledError):
    """Who read a whole answer was cancelled when part of it was here already."""


class Source(Protocol):
    """Where the bytes come from. Not touched again once it ended the answer."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def quit(self) -> None: ...


class Answer:
    """A provider's answer. Read it to its end or close it; three ways, of which choose one."""

    # Defaults of the class, not slots: an answer is made per request, and most need none of these.
    done = False  # the whole body has arrived
    error: ProviderError | None = None  # or why it never will
    _size = 0  # bytes of body so far
    _buffered = 0  # of them not taken yet
    _held = False  # the source was asked to pause
    _whole = False  # somebody wants it in one piece: no high-water mark
    _waiter: asyncio.Future[None] | None = None
    _sink: Sink | None = None
    _unpack: Unpacker | None = None

    def __init__(self, status: int, head: bytes, source: Source, limit: int) -> None:
        self.status = status
        self._head = head  # status line and headers, without the blank line
        self._low = low = head.lower()
        self._source: Source | None = source
        self._limit = limit
        self._parts: list[bytes] = []
        if low.find(b"\ncontent-encoding:") >= 0:
            self._unpack = unpacker(self.header("content-encoding"))

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Every header as it came, names in lower case; made when asked for."""
        lines = self._head.split(b"\r\n")[1:]
        pairs = (line.partition(b":") for line in lines)
        return [(name.lower(), value.strip(b" \t")) for name, _, value in pairs]

    def header(self, name: str) -> str:
        """The first value under this name, or an empty text."""
        mark = b"\r\n%b:" % name.lower().encode("latin-1")
        start = self._low.find(mark)
        if start < 0:
            return ""
        start += len(mark)
        end = self._head.find(b"\r\n", start)
        value = self._head[start:] if end < 0 else self._head[start:end]
        return value.strip(b" \t").decode("latin-1")

    def mentions(self, words: tuple[bytes, ...]) -> bool:
        """Does any of these, in lower case, stand anywhere in the head?"""
        low = self._low
        for word in words:  # noqa: SIM110 - in an outage this is asked of each answer
            if word in low:
                return True
        return False

    # -- the three ways out -------------------------------------------------------------------

    async def read(self) -> bytes:
        """The whole body. What was taken is gone: a second call gives nothing."""
        if not self.done:
            self._whole = True
            self.resume()
            while not self.done:
                if self.error is not None:
                    raise self.error
                await self._more()
        return self._take()

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; never empty chunks."""
        return self

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._parts:
            if self.done:
                raise StopAsyncIteration
            if self.error is not None:
                raise self.error
            await self._more()
        data = self._take()
        if self._held:
            self.resume()
        return data

    def push(self, sink: Sink) -> None:
        """Hand over what is here and call the sink with what comes, from the event loop."""
        self._sink = sink
        if self._parts or self._held or self.done or self.error is not None:
            self.resume()

    def pause(self) -> None:
        """Push mode: no more calls until `resume`."""
        self._held = True
        if self._source is not None:
            self._source.pause()

    def resume(self) -> None:
        held, self._held = self._held, False
        if self._sink is not None:
            self._flush()
        if held and not self._held and self._source is not None:
            self._source.resume()

    def close(self) -> None:
        """Not interested (any more). Ends the connection unless the body was all here."""
        self._sink = None
        self._parts.clear()
        source = self._source
        if source is None:
            return
        self.fail(
            ProviderError(
                Fault.TRANSIENT,
                message="the answer was closed before its end",
                billing="maybe_billed",
            )
        )
        source.quit()

    def finish(self, seconds: float = LINGER) -> None:
        """All that matters was read: take what little may be left, to keep the connection.

        A stream is over for its reader at its last event, but for the connection only at the last
        chunk, which may come a moment later. Closing there would cost a handshake per stream.
        """
        limit = self._size - self._buffered + LEFTOVER
        self._take()
        if self._source is None:
            return
        patience = asyncio.get_running_loop().call_later(seconds, self.close)

        def spill(_: bytes | None, done: bool) -> None:
            if done or self._size > limit:
                patience.cancel()
                self.close()  # which does nothing to what is done

        spill(None, False)
        if self._source is not None:
            self.push(spill)

    # -- the way in ---------------------------------------------------------------------------

    def arrive(self, data: bytes, done: bool) -> None:
        """From the source. Raises what is wrong with the bytes; the source then calls `fail`."""
        if self._unpack is not None:
            data = self._unpack.feed(data, self._limit - self._size)
            if done:
                self._unpack.end()
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge(f"sent a body of more than {self._limit} bytes")
        if done:
            self.done = True
            self._source = None
        if self._sink is not None and not self._held:
            if data or done:
                self._emit(data, done)
            return
        if data:
            self._parts.append(data)
            self._buffered += len(data)
        if self._waiter is not None and (done or not self._whole):
            self._wake()
        if self._buffered > HIGH_WATER and not (done or self._whole or self._held):
            self.pause()

    def fail(self, error: ProviderError) -> None:
        """From the source: the rest will not come."""
        if self.done or self.error is not None:
            return
        self.error = error
        self._source = None
        self._wake()
        if self._sink is not None and not self._held:
            self._emit(None, True)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _emit(self, data: bytes | None, last: bool) -> None:
        sink = self._sink
        assert sink is not None
        if last:
            self._sink = None
        sink(data, last)

    def _flush(self) -> None:
        data = self._take()
        if self.done or data:
            self._emit(data, self.done)
        # The sink may have paused or closed us in the meantime.
        if self.error is not None and self._sink is not None and not self._held:
            self._emit(None, True)

    def _take(self) -> bytes:
        parts = self._parts
        self._buffered = 0
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        return data

    async def _more(self) -> None:
        if self._waiter is not None:
            raise RuntimeError("somebody else is reading this answer")
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self._waiter = None
            self.close()
            if self._size and self._whole:
                raise CutShort from None
            raise
