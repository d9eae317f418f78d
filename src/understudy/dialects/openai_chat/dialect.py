"""OpenAI Chat Completions, the wire most vendors speak, each with an accent.

The accents we must write in are flags of an instance, set by the quirks in a vendor's row; those
we must understand are all read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from understudy.dialects import error_body
from understudy.dialects.base import UNASKED, Asked, Inbound
from understudy.dialects.json_access import Node, Wire, items, obj, text
from understudy.dialects.openai_chat.parts import ISSUER
from understudy.dialects.openai_chat.reader import ChatReader
from understudy.dialects.openai_chat.refusals import REFUSALS
from understudy.dialects.openai_chat.request import (
    read_request,
    wants_functions,
    write_request,
)
from understudy.dialects.openai_chat.response import UNNAMED, read_response, write_response
from understudy.dialects.openai_chat.writer import ChatWriter
from understudy.dialects.openai_models import bent, lacks_word, unheard
from understudy.dialects.tool_ids import nine_letter_id
from understudy.messages.bends import STRAIGHT, Bends, bends_for
from understudy.messages.parts import Json
from understudy.messages.request import Request, Schema
from understudy.messages.response import Response
from understudy.messages.schema import state_schema

_ANY_OBJECT = Schema({"type": "object"})
_DEVELOPER = b'"developer"'
_ANY_JSON, _SCHEMA = b'"json_object"', b'"json_schema"'
_LISTED = re.compile(rb'"content": ?\[')


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """The dialect `openai`. The flags change only how requests are written."""

    legacy_max_tokens: bool = False  # the vendor knows `max_tokens` only
    system_only: bool = False  # it refuses, or drops, what a `developer` says (most but OpenAI)
    flat_text: bool = False  # the vendor refuses text as a list of parts (DeepSeek, older vLLM)
    nine_letter_ids: bool = False  # Mistral
    random_seed: bool = False  # what Mistral calls the seed
    refuses_as: str = ""  # the row of REFUSALS for a vendor that refuses what it does not know
    schema_only: bool = False  # JSON of any shape has to be asked for by a schema
    state_schema: bool = False  # it may ignore a schema: say it in words as well (contract M5)

    name = ISSUER
    id_prefix = "chatcmpl-"

    def path(self, model: str, stream: bool) -> str:
        return "/chat/completions"

    def is_own(self, body: bytes, model: str) -> bool:
        return not (
            (self.refuses_as and REFUSALS[self.refuses_as].met_in(body))
            or (self.system_only and body.find(_DEVELOPER) >= 0)
            or (self.schema_only and body.find(_ANY_JSON) >= 0)
            or (self.state_schema and body.find(_SCHEMA) >= 0)
            or (self.flat_text and _LISTED.search(body))
            or (self.nine_letter_ids and body.find(b'"tool_call') >= 0)
        )

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        """`model` stands in for a missing one, as in Azure's paths."""
        root = Node.root(body)
        named = root["model"].opt_text() or model or root["model"].text()
        wanted = root["stream"].opt_flag() or False
        return Inbound(named, wanted, read_request(root))

    def write_request(self, request: Request, model: str, stream: bool) -> Wire:
        foreign = request.issuer != ISSUER
        if request.output and (self.state_schema or (foreign and _is_wordless(request))):
            request = replace(state_schema(request), output=request.output)
        if self.schema_only and request.output and request.output.schema is None:
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
        renamed = {
            "max_completion_tokens": "max_tokens" if self.legacy_max_tokens else "",
            "seed": "random_seed" if self.random_seed else "",
        }
        for ours, theirs in renamed.items():
            if theirs and ours in body:
                body[theirs] = body.pop(ours)
        if self.refuses_as:
            body = REFUSALS[self.refuses_as].left_out(body)
        if self.system_only or self.flat_text or self.nine_letter_ids:
            body["messages"] = [self._accented_turn(obj(m)) for m in items(body["messages"])]
        return body

    def _accented_turn(self, turn: Wire) -> Wire:
        turn = dict(turn)
        if self.system_only and turn.get("role") == "developer":
            turn["role"] = "system"
        if self.flat_text and (flat := _flat(turn.get("content"))) is not None:
            turn["content"] = flat
        if self.nine_letter_ids:
            _shorten(turn)
        return turn


def _is_wordless(request: Request) -> bool:
    wants_json = request.output is not None and request.output.schema is None
    return wants_json and lacks_word(request.messages)


def wants_usage(request: Request) -> bool:
    """Did this client ask for usage in its stream?"""
    options = obj(request.extra.get("stream_options")) if request.issuer == ISSUER else {}
    return options.get("include_usage") is True


def _flat(content: Json) -> str | None:
    parts = [obj(part) for part in items(content)]
    if not parts or any(part.get("type") != "text" for part in parts):
        return None
    return "\n\n".join(text(part.get("text")) for part in parts)


def _shorten(turn: Wire) -> None:
    if "tool_call_id" in turn:
        turn["tool_call_id"] = nine_letter_id(text(turn["tool_call_id"]))
    if "tool_calls" in turn:
        calls = [obj(call) for call in items(turn["tool_calls"])]
        turn["tool_calls"] = [{**c, "id": nine_letter_id(text(c.get("id")))} for c in calls]
