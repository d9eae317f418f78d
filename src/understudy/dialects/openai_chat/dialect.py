"""OpenAI Chat Completions, the wire most vendors speak, each with an accent.

The accents we must write in are flags of an instance, set by the quirks in a vendor's row; those
we must understand are all read.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.dialects import error_body
from understudy.dialects.base import UNASKED, Asked, Inbound
from understudy.dialects.json_access import Node, Wire, items, obj
from understudy.dialects.openai_chat.accents import ACCENTS
from understudy.dialects.openai_chat.parts import ISSUER
from understudy.dialects.openai_chat.reader import ChatReader
from understudy.dialects.openai_chat.request import (
    read_request,
    wants_functions,
    write_request,
)
from understudy.dialects.openai_chat.response import UNNAMED, read_response, write_response
from understudy.dialects.openai_chat.writer import ChatWriter
from understudy.dialects.openai_models import bent, lacks_word, unheard
from understudy.messages.bends import STRAIGHT, Bends, bends_for
from understudy.messages.request import Request, Schema
from understudy.messages.response import Response
from understudy.messages.schema import state_schema

_ANY_OBJECT = Schema({"type": "object"})


class OpenAIChat:
    """The dialect `openai`. Its quirks are those of `ACCENTS`; they change what is written."""

    name = ISSUER
    id_prefix = "chatcmpl-"
    quirks = frozenset(ACCENTS)

    def __init__(self, **quirks: bool) -> None:
        accents = [ACCENTS[quirk] for quirk in sorted(quirks)]
        self._accents = accents
        self._marks = tuple(mark for accent in accents for mark in accent.marks)
        self._schema_only = "schema_only" in quirks
        self._schema_stated = "schema_stated" in quirks

    def path(self, model: str, stream: bool) -> str:
        return "/chat/completions"

    def is_own(self, body: bytes, model: str) -> bool:
        return not any(body.find(mark) >= 0 for mark in self._marks)

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        """`model` stands in for a missing one, as in Azure's paths."""
        root = Node.root(body)
        named = root["model"].opt_text() or model or root["model"].text()
        wanted = root["stream"].opt_flag() or False
        return Inbound(named, wanted, read_request(root))

    def write_request(self, request: Request, model: str, stream: bool) -> Wire:
        foreign = request.issuer != ISSUER
        if request.output and (self._schema_stated or (foreign and _is_wordless(request))):
            request = replace(state_schema(request), output=request.output)
        if self._schema_only and request.output and request.output.schema is None:
            request = replace(request, output=_ANY_OBJECT)
        if foreign:
            request = bent(self.bends(request, model).told(request), model)
        body: Wire = {"model": model, **write_request(request)}
        if stream:
            body["stream"] = True
            body["stream_options"] = {**obj(body.get("stream_options")), "include_usage": True}
        else:
            body.pop("stream_options", None)  # refused without a stream
        return self._accented(body)

    def bends(self, request: Request, model: str) -> Bends:
        foreign = request.issuer != ISSUER
        return bends_for(request, unheard(request, model)) if foreign else STRAIGHT

    def read_response(self, body: bytes) -> Response:
        return read_response(body)

    def write_response(self, response: Response, model: str, asked: Asked = UNASKED) -> Wire:
        body = write_response(response, model, wants_functions(asked.request))
        body["created"] = body["created"] or asked.now
        return body

    def reader(self) -> ChatReader:
        return ChatReader()

    def writer(self, model: str, asked: Asked = UNASKED) -> ChatWriter:
        usage, legacy = wants_usage(asked.request), wants_functions(asked.request)
        return ChatWriter(model, usage, asked.id or UNNAMED, asked.now, legacy)

    def read_error(self, body: bytes) -> str:
        return error_body.read_error(body)

    def write_error(self, status: int, message: str, kind: str) -> Wire:
        return error_body.write_error(status, message, kind)

    def _accented(self, body: Wire) -> Wire:
        if not self._accents:
            return body
        turns = [obj(turn) for turn in items(body["messages"])]
        for accent in self._accents:
            body, turns = accent.body(body), [accent.turn(turn) for turn in turns]
        return {**body, "messages": [*turns]}


def _is_wordless(request: Request) -> bool:
    wants_json = request.output is not None and request.output.schema is None
    return wants_json and lacks_word(request.messages)


def wants_usage(request: Request) -> bool:
    """Did this client ask for usage in its stream?"""
    options = obj(request.extra.get("stream_options")) if request.issuer == ISSUER else {}
    return options.get("include_usage") is True
