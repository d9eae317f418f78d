"""The OpenAI Responses API: items instead of messages, a typed event for everything."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.dialects import error_body
from understudy.dialects.base import UNASKED, Asked, Inbound
from understudy.dialects.json_access import Node, Wire
from understudy.dialects.openai_models import afforded, bent
from understudy.dialects.openai_responses.items import ISSUER, OURS
from understudy.dialects.openai_responses.reader import ResponsesReader
from understudy.dialects.openai_responses.request import read_request, write_request
from understudy.dialects.openai_responses.response import UNNAMED, read_response, write_response
from understudy.dialects.openai_responses.writer import ResponsesWriter
from understudy.messages.bends import STRAIGHT, Bends, bends_for
from understudy.messages.request import Request
from understudy.messages.response import Response

_OURS = OURS.encode()


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """The dialect `responses`."""

    name = ISSUER
    quirks = frozenset[str]()
    id_prefix = "resp_"

    def path(self, model: str, stream: bool) -> str:
        return "/responses"

    def is_own(self, body: bytes, model: str) -> bool:
        return body.find(_OURS) < 0  # OpenAI looks for items by their ids

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        """`model` stands in for a missing one, as in Azure's paths."""
        root = Node.root(body)
        named = root["model"].opt_text() or model or root["model"].text()
        wanted = root["stream"].opt_flag() or False
        return Inbound(named, wanted, read_request(root))

    def write_request(self, request: Request, model: str, stream: bool) -> Wire:
        if request.issuer != ISSUER:
            request = self.bends(request, model).told(request)
            request = afforded(bent(request, model), model)
        body: Wire = {"model": model, **write_request(request)}
        return {**body, "stream": True} if stream else body

    def bends(self, request: Request, model: str) -> Bends:
        foreign = request.issuer != ISSUER
        return bends_for(request, request.stop) if foreign else STRAIGHT  # it knows no stops

    def read_response(self, body: bytes) -> Response:
        return read_response(body)

    def write_response(self, response: Response, model: str, asked: Asked = UNASKED) -> Wire:
        body = write_response(response, model) | _echo(asked.request)
        body["created_at"] = body["created_at"] or asked.now
        return body

    def reader(self) -> ResponsesReader:
        return ResponsesReader()

    def writer(self, model: str, asked: Asked = UNASKED) -> ResponsesWriter:
        return ResponsesWriter(model, asked.id or UNNAMED, asked.now, _echo(asked.request))

    def read_error(self, body: bytes) -> str:
        return error_body.read_error(body)

    def write_error(self, status: int, message: str, kind: str) -> Wire:
        return error_body.write_error(status, message, kind)


def _echo(request: Request) -> Wire:
    """What an answer repeats of its request that clients rely on: the format asked for."""
    written = write_request(request).get("text")
    return {"text": written} if written else {}
