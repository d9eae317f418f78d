"""One connection: an HTTP/1.1 exchange at a time, written and parsed here.

The parser (llhttp, in its strict form) is made once per connection and calls back for framing
only: where a head ends, body bytes, where a message ends. It is not asked for headers; the head
is kept as it came and looked into when somebody wants to know (`Answer.header`), which halves the
work for an answer. Body bytes go from the parser straight into a list.

An exchange is open while `_done` is false. When its last byte arrives the connection goes home
before the answer is handed on, so an answer never holds a connection it does not need.

Knows bytes and its transport; opens nothing, keeps no time, decides about no retry.
"""

from __future__ import annotations

import asyncio
import math
import select
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from understudy.core.errors import ProviderError
from understudy.providers.answer import Answer
from understudy.providers.outbox import Outbox
from understudy.providers.transport import Limits, Origin, Outgoing
from understudy.providers.trouble import Cut, Malformed, TooLarge, trouble

BULKY = 16 * 1024  # bytes; a request smaller than this fits into the buffers of an idle socket
CLOSING = "was let go: the transport is closing"


class Home(Protocol):
    """Who is told when a connection is free again, and when it is no more."""

    def free(self, connection: Connection) -> None: ...

    def has_just_had(self, connection: Connection) -> bool:
        """Did it come home a moment ago?"""

    def lost(self, connection: Connection) -> None: ...


class Waiter(Protocol):
    """Who began an exchange: a future, or anything that is told at once, from the event loop."""

    def done(self) -> bool:
        """Is it told already, or does it not want to be?"""

    def set_result(self, answer: Answer, /) -> None: ...

    def set_exception(self, error: ProviderError, /) -> None: ...


class Connection(asyncio.Protocol):
    """An open connection to an origin; `begin` starts an exchange on it."""

    __slots__ = (
        "_answer",
        "_bulky",
        "_done",
        "_head",
        "_home",
        "_interim",
        "_keep",
        "_limits",
        "_origin",
        "_parser",
        "_parts",
        "_paused",
        "_poll",
        "_status",
        "_transport",
        "_unsent",
        "_waiter",
        "idle_since",
        "on_body",
    )

    def __init__(self, home: Home, origin: Origin) -> None:
        self.idle_since = -math.inf  # by the pool's clock; when it last came home
        self._home = home
        self._origin = origin
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._paused = False
        self._limits = Limits()
        # The exchange; between two of them there is no answer, no head and nobody waiting.
        self._done = True
        self._unsent = b""  # the request, until the turn's end; see `Outbox`
        self._bulky = False  # a request too large to have been written in one go
        self._status = 0  # of the final answer, once its head is complete
        self._keep = False
        self._interim = 0  # 1xx heads before it
        self._head = b""  # until there is an answer
        self._answer: Answer | None = None
        self._waiter: Waiter | None = None
        self._parts: list[bytes] = []
        self.on_body = self._parts.append  # the parser's callback, without a Python frame
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    # -- asked by the pool --------------------------------------------------------------------

    def begin(
        self, outgoing: Outgoing, limits: Limits, waiter: Waiter, outbox: Outbox | None = None
    ) -> bool:
        """Write a request; the waiter gets its answer. False: we were dead, nothing was sent.

        By an outbox it may be written later in this turn. If we are found dead only then, or the
        peer closed behind its last answer and never heard us, the waiter gets an error whose
        billing is `not_sent`.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        self._limits = limits
        self._done = False
        self._status = 0
        self._waiter = waiter
        body = outgoing.body
        self._bulky = len(body) > BULKY
        data = b"%bcontent-length: %d\r\n\r\n%b" % (outgoing.head, len(body), body)
        if outbox is not None and outbox.takes(self):
            self._unsent = data
            return True
        return self._write(transport, data)

    def _write(self, transport: asyncio.Transport, data: bytes) -> bool:
        transport.write(data)
        if transport.is_closing():
            # The very first write failed: the peer had reset the connection, nothing went out.
            self.abort()
            return False
        return True

    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def is_quiet(self) -> bool:
        """Open, and by a look at the socket: the peer has neither closed nor said anything."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        if self._poll is None:
            if not hasattr(select, "poll"):
                return True
            self._poll = select.poll()
            encrypted = transport.get_extra_info("ssl_object") is not None
            # Under TLS there may be something to read without any fault: session tickets.
            events = 0 if encrypted else select.POLLIN
            # Not every system can tell a half-closed connection.
            events |= getattr(select, "POLLRDHUP", 0)
            self._poll.register(transport.get_extra_info("socket").fileno(), events)
        return not self._poll.poll(0)

    def abort(self) -> None:
        """Close at once; an exchange under way is simply over."""
        self._done = True
        self._unsent = b""
        self._answer = self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    def shut(self) -> None:
        """Close at once and tell whoever waits."""
        if self._done:
            self.abort()
        else:
            self._fail(Cut(CLOSING), self._answer)

    def forsake(self, waiter: Waiter) -> None:
        """Whoever began the exchange wants its answer no more."""
        if waiter is self._waiter:
            self.abort()

    # -- asked by the outbox ------------------------------------------------------------------

    def flush(self) -> None:
        data, self._unsent = self._unsent, b""
        waiter, transport = self._waiter, self._transport
        if not data or waiter is None or transport is None:
            return  # forsaken in the meantime, or told that we are dead
        if transport.is_closing() or not self._write(transport, data):
            self._not_sent(waiter)

    def _not_sent(self, waiter: Waiter) -> None:
        self.abort()
        if not waiter.done():
            waiter.set_exception(trouble(ConnectionResetError(), self._origin, sent=False))

    # -- asked by the answer ------------------------------------------------------------------

    def pause(self) -> None:
        self._paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        self._paused = False
        if self._transport is not None:
            self._transport.resume_reading()

    def quit(self) -> None:
        self.abort()

    # -- told by the event loop ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Said, not asked: uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._done:
            # Nobody asked. Whatever it is, the next exchange must not get it as an answer.
            self.abort()
            return
        if self._unsent and self._waiter is not None:
            self._not_sent(self._waiter)  # nobody has asked yet
            return
        if self._answer is None:
            head = self._head = self._head + data if self._head else data
            if len(head) > self._limits.max_head:
                self._feed_up_to_limit(data)
                return
        self._feed(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self._done:
            self._ended(error)
        # The parser holds our methods and we hold the parser.
        self._parser = None
        self._home.lost(self)

    # -- told by the parser -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._done:
            raise Malformed("sent more than one answer")

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 100 or status == 101:
            raise Malformed(f"answered with status {status:03d}")
        if status < 200:
            self._interim += 1
            return
        self._status = status
        self._keep = self._parser.should_keep_alive()

    def on_message_complete(self) -> None:
        self._done = self._status != 0

    # -- the exchange -------------------------------------------------------------------------

    def _feed_up_to_limit(self, data: bytes) -> None:
        room = self._limits.max_head - (len(self._head) - len(data))
        self._feed(data[:room])
        if self._done:
            if room < len(data):
                self.abort()
        elif self._answer is None:
            self._fail(TooLarge(f"sent a head of more than {self._limits.max_head} bytes"))
        else:
            self._feed(data[room:])

    def _feed(self, data: bytes) -> None:
        assert self._parser is not None
        broken: Exception | None = None
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            # After the end of the answer this is surplus: the answer stands, we are not reused.
            broken = error
            self._keep = False
        answer, done, parts = self._answer, self._done, self._parts
        if answer is None:
            answer = self._open_answer(broken)
            if answer is None:
                return
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        if done:
            self._answer = None
            if self._keep and not (self._bulky and self._is_still_writing()):
                if self._paused:
                    self.resume()
                self._home.free(self)
            else:
                self.abort()
        try:
            answer.arrive(body, done)
        except (TooLarge, Malformed, Cut) as error:
            self._fail(error, answer)
        if broken is not None and not done:
            self._fail(not_http(broken), answer)

    def _is_still_writing(self) -> bool:
        """An answer to half a request: the other half must not run into the next one."""
        return self._transport is not None and self._transport.get_write_buffer_size() > 0

    def _open_answer(self, broken: Exception | None) -> Answer | None:
        """The answer, handed over, if its head is complete and somebody still wants it."""
        if not self._status:
            if broken is not None:
                self._fail(not_http(broken))
            return None
        waiter = self._waiter
        if waiter is None or waiter.done():
            self.abort()  # cancelled, and has not come round to telling us
            return None
        try:
            answer = Answer(self._status, self._cut_head(), self, self._limits.max_reply)
        except Malformed as error:
            self._fail(error)
            return None
        self._answer = answer
        self._waiter = None
        waiter.set_result(answer)
        return answer

    def _cut_head(self) -> bytes:
        """Status line and headers of the final answer, without any 1xx before it."""
        head, self._head = self._head, b""
        if self._interim or head[0] != 0x48:  # an "H"
            head = head.lstrip(b"\r\n")  # blank lines in front are allowed (RFC 9112, 2.2)
            while self._interim:
                head = head[head.find(b"\r\n\r\n") + 4 :].lstrip(b"\r\n")
                self._interim -= 1
        end = head.find(b"\r\n\r\n")
        if end < 0:
            raise Malformed("sent a head without an end")
        return head[:end]

    def _ended(self, error: Exception | None) -> None:
        """The connection is gone in the middle of an exchange, unless this is how it ends."""
        answer = self._answer
        unheard = answer is None and not self._head and self._home.has_just_had(self)
        if self._waiter is not None and (self._unsent or unheard):
            self._not_sent(self._waiter)
        elif answer is None:
            where = "in the middle of its head" if self._head else "without an answer"
            self._fail(error or Cut(f"closed the connection {where}"))
        elif error or answer.header("content-length") or answer.header("transfer-encoding"):
            self._fail(error or Cut("closed the connection in the middle of its answer"), answer)
        else:
            self._done = True
            try:
                answer.arrive(b"", True)
            except (Malformed, Cut) as reason:
                self._fail(reason, answer)

    def _fail(self, error: Exception, answer: Answer | None = None) -> None:
        waiter = self._waiter
        if answer is None or answer is self._answer:
            self.abort()
        failure = trouble(error, self._origin, sent=True)
        if answer is not None:
            answer.fail(failure)
        elif waiter is not None and not waiter.done():
            waiter.set_exception(failure)


def not_http(error: Exception) -> Malformed:
    """What the parser objected to; our own objections come wrapped in the parser's."""
    inner = error.__context__
    if isinstance(inner, Malformed):
        return inner
    told = Malformed(f"does not speak HTTP/1.1 as it should ({error})")
    told.__cause__ = error
    return told
