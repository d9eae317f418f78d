"""Anthropic's Messages API. The base URL has no version: `https://api.anthropic.com`."""

from __future__ import annotations

import re

from understudy.dialects.anthropic.blocks import ISSUER
from understudy.dialects.anthropic.errors import write_error
from understudy.dialects.anthropic.reader import AnthropicReader
from understudy.dialects.anthropic.request import read_request, write_request
from understudy.dialects.anthropic.response import UNNAMED, read_response, write_response
from understudy.dialects.anthropic.writer import AnthropicWriter
from understudy.dialects.base import (
    UNASKED,
    Asked,
    Garbled,
    Inbound,
    StreamReader,
    StreamWriter,
)
from understudy.dialects.error_body import read_error, wire_error
from understudy.dialects.json_access import decode, excerpt, obj, whole
from understudy.dialects.longest import granted
from understudy.messages.bends import STRAIGHT, Bends, bends_for
from understudy.messages.parts import Json
from understudy.messages.request import Request
from understudy.messages.response import Response

COUNT_TOKENS_PATH = "/v1/messages/count_tokens"
_ANSWERS_OTHERS = re.compile(rb'"tool_use_id": ?"(?!toolu_|srvtoolu_)')
_UNSIGNED = (b'"signature":""', b'"signature": ""')  # another vendor's thinking, as we show it


class Anthropic:
    """The Messages dialect. See `Dialect`."""

    name = ISSUER
    quirks = frozenset[str]()
    id_prefix = "msg_"

    def path(self, model: str, stream: bool) -> str:
        return "/v1/messages"

    def is_own(self, body: bytes, model: str) -> bool:
        if "claude" not in model:
            return True  # who else speaks so has signatures of its own, or none
        if any(body.find(mark) >= 0 for mark in _UNSIGNED):
            return False
        # Thinking by a budget must have come before the calls that are answered now.
        return body.find(b'"budget_tokens"') < 0 or _ANSWERS_OTHERS.search(body) is None

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        return read_request(body, model)

    def write_request(self, request: Request, model: str, stream: bool) -> dict[str, Json]:
        if request.issuer != ISSUER:
            request = granted(self.bends(request, model).told(request), model)
        return write_request(request, model, stream)

    def bends(self, request: Request, model: str) -> Bends:
        if request.issuer == ISSUER:
            return STRAIGHT
        return bends_for(request, tuple(stop for stop in request.stop if not stop.strip()))

    def read_response(self, body: bytes) -> Response:
        return read_response(body)

    def write_response(
        self, response: Response, model: str, asked: Asked = UNASKED
    ) -> dict[str, Json]:
        return write_response(response, model)

    def reader(self) -> StreamReader:
        return AnthropicReader()

    def writer(self, model: str, asked: Asked = UNASKED) -> StreamWriter:
        return AnthropicWriter(model, asked.id or UNNAMED)

    def read_error(self, body: bytes) -> str:
        return read_error(body)

    def write_error(self, status: int, message: str, kind: str) -> dict[str, Json]:
        return write_error(status, message, kind)

    def read_token_count(self, body: bytes) -> int:
        """The answer of `COUNT_TOKENS_PATH`."""
        value = decode(body)
        count = whole(obj(value).get("input_tokens"))
        if count is not None:
            return count
        if obj(value).get("error"):
            raise wire_error(body, value)
        raise Garbled(f"no token count: {excerpt(body)}")
