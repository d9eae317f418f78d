"""Upstreams that begin to answer in a dialect and end wrongly."""

from __future__ import annotations

from collections.abc import Callable

from understudy.dialects.base import StreamWriter
from understudy.dialects.table import dialect_named
from understudy.gateway.http import Reply, Request
from understudy.gateway.server import Application
from understudy.messages.response import TextDelta

Ending = Callable[[Reply, StreamWriter], None]

ENDINGS: dict[str, Ending] = {
    "an error event": lambda reply, writer: reply.finish(
        writer.write_error(503, "out of breath", "server_error")
    ),
    "no end mark": lambda reply, _: reply.finish(),
    "a dead socket": lambda reply, _: reply.abort(),
}


def breaking_off(dialect: str, ending: Ending) -> Application:
    """An upstream that sends two pieces of text, then ends wrongly."""

    async def answer(request: Request, reply: Reply) -> None:
        writer = dialect_named(dialect).writer("m")
        reply.start(200, b"content-type: text/event-stream\r\n")
        for text in ("one ", "two "):
            reply.write(writer.write_event(TextDelta(text)))
        ending(reply, writer)

    return answer
