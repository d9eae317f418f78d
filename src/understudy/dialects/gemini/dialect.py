"""Google's generateContent, of the Gemini API and of Vertex AI. The URL names the model."""

from __future__ import annotations

from urllib.parse import quote

from understudy.dialects.base import (
    UNASKED,
    Asked,
    Garbled,
    Inbound,
    StreamReader,
    StreamWriter,
    Truncated,
)
from understudy.dialects.error_body import read_error
from understudy.dialects.gemini.errors import write_error
from understudy.dialects.gemini.models import is_signed
from understudy.dialects.gemini.parts import ISSUER, UNSIGNED
from understudy.dialects.gemini.reader import GeminiReader
from understudy.dialects.gemini.request import read_request, write_request
from understudy.dialects.gemini.response import (
    failed,
    first_candidate,
    read_content,
    response_of,
    write_response,
)
from understudy.dialects.gemini.writer import GeminiWriter
from understudy.dialects.json_access import decode, excerpt, text
from understudy.dialects.longest import granted
from understudy.messages.bends import STRAIGHT, Bends, bends_for
from understudy.messages.parts import Json
from understudy.messages.request import Request
from understudy.messages.response import Response

_MOST_STOPS = 5
_UNSIGNED = UNSIGNED.encode()


class Gemini:
    """The generateContent dialect. See `Dialect`.

    `array`: streams are written as one JSON array, as Google does when `alt=sse` is not asked for.
    """

    name = ISSUER
    quirks = frozenset({"array"})
    id_prefix = ""

    def __init__(self, *, array: bool = False) -> None:
        self._array = array

    def path(self, model: str, stream: bool) -> str:
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"/v1beta/{_resource(model)}:{verb}"

    def is_own(self, body: bytes, model: str) -> bool:
        return is_signed(model) or body.find(_UNSIGNED) < 0

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        return read_request(body, model, stream)

    def write_request(self, request: Request, model: str, stream: bool) -> dict[str, Json]:
        if request.issuer != ISSUER:
            request = granted(self.bends(request, model).told(request), model)
        return write_request(request, model)

    def bends(self, request: Request, model: str) -> Bends:
        if request.issuer == ISSUER:
            return STRAIGHT
        return bends_for(request, request.stop[_MOST_STOPS:])

    def read_response(self, body: bytes) -> Response:
        value = decode(body)
        error = failed(body, value)
        if error:
            raise error
        if isinstance(value, list) and value:
            return _whole(body)
        if not isinstance(value, dict):
            raise Garbled(f"no answer: {excerpt(body)}")
        response_id = text(value.get("responseId"))
        return response_of(value, read_content(first_candidate(value), response_id))

    def write_response(
        self, response: Response, model: str, asked: Asked = UNASKED
    ) -> dict[str, Json]:
        return write_response(response, model)

    def reader(self) -> StreamReader:
        return GeminiReader()

    def writer(self, model: str, asked: Asked = UNASKED) -> StreamWriter:
        return GeminiWriter(model, self._array, asked.foreign)

    def read_error(self, body: bytes) -> str:
        return read_error(body)

    def write_error(self, status: int, message: str, kind: str) -> dict[str, Json]:
        return write_error(status, message, kind)


def _resource(model: str) -> str:
    """`gemini-x` lies below `models/`; a name with slashes says itself where it lies."""
    steps = model.split("/")
    if any(step in ("", ".", "..") for step in steps):
        return f"models/{quote(model, safe='')}"  # no name of ours may climb out of its place
    path = "/".join(quote(step, safe="") for step in steps)
    return path if len(steps) > 1 else f"models/{path}"


def _whole(body: bytes) -> Response:
    """A stream that was recorded or relayed as one array."""
    reader = GeminiReader()
    try:
        events = [*reader.feed(body), *reader.end()]
    except Truncated as error:
        raise Garbled(f"no whole answer: {excerpt(body)}") from error
    last = events[-1] if events else None
    if isinstance(last, Response):
        return last
    raise reader.failure or Garbled(f"no answer: {excerpt(body)}")
