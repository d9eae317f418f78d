"""Ollama's own chat API, `/api/chat`: NDJSON, arguments as objects, pictures as bare base64."""

from __future__ import annotations

from understudy.dialects.base import UNASKED, Asked, Inbound, StreamReader, StreamWriter
from understudy.dialects.error_body import read_error
from understudy.dialects.ollama.messages import ISSUER
from understudy.dialects.ollama.reader import OllamaReader
from understudy.dialects.ollama.request import read_request, write_request
from understudy.dialects.ollama.response import read_response, write_response
from understudy.dialects.ollama.writer import OllamaWriter
from understudy.messages.bends import STRAIGHT, Bends
from understudy.messages.parts import Json
from understudy.messages.request import Request
from understudy.messages.response import Response


class Ollama:
    """The Ollama dialect. See `Dialect`.

    `state_schema`: a schema for the answer is also put into words, as a last system message,
    because small models keep to `format` without knowing what is wanted (contract M5).
    """

    name = ISSUER
    quirks = frozenset[str]()
    id_prefix = ""

    def __init__(self, *, state_schema: bool = True) -> None:
        self._state_schema = state_schema

    def path(self, model: str, stream: bool) -> str:
        return "/api/chat"

    def is_own(self, body: bytes, model: str) -> bool:
        return True  # it insists on nothing

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        return read_request(body)

    def write_request(self, request: Request, model: str, stream: bool) -> dict[str, Json]:
        return write_request(request, model, stream, self._state_schema)

    def bends(self, request: Request, model: str) -> Bends:
        return STRAIGHT

    def read_response(self, body: bytes) -> Response:
        return read_response(body)

    def write_response(
        self, response: Response, model: str, asked: Asked = UNASKED
    ) -> dict[str, Json]:
        return write_response(response, model)

    def reader(self) -> StreamReader:
        return OllamaReader()

    def writer(self, model: str, asked: Asked = UNASKED) -> StreamWriter:
        return OllamaWriter(model)

    def read_error(self, body: bytes) -> str:
        return read_error(body)

    def write_error(self, status: int, message: str, kind: str) -> dict[str, Json]:
        return {"error": message}
