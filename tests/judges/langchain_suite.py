"""LangChain's standard tests of a chat model, as they are, for `ChatOpenAI` before our gateway.

Run by the judges' pytest; `GATEWAYS` in the environment holds the address for each class below.
What a class cannot be asked is said by the properties of the suite, and listed with its reason by
the test that runs it (test_langchain.py).
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests, chat_models

ADDRESSES = json.loads(os.environ["GATEWAYS"])  # noqa: TID251 - a program, and told this way


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = b"\x89PNG\r\n\x1a\n" + b"".join((
    _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
    _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")),
    _chunk(b"IEND", b""),
))  # fmt: skip
PDF = b"%PDF-1.1\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack(
    "<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8
) + b"data\0\0\0\0"  # fmt: skip


@dataclass(frozen=True)
class Fetched:
    content: bytes


class Shelf:
    """The suite fetches a picture, a document and a sound from the web: here they are at hand."""

    @staticmethod
    def get(url: str, **_: object) -> Fetched:
        return Fetched({"png": PNG, "pdf": PDF, "wav": WAV}[url.rpartition(".")[2]])


chat_models.httpx = Shelf  # type: ignore[assignment]


class Standard(ChatModelIntegrationTests):
    """What every gateway here is asked."""

    place = ""
    responses = False

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {
            "model": "chat",
            "base_url": f"{ADDRESSES[self.place]}/v1",
            "api_key": ADDRESSES["key"],
            "max_retries": 0,
            "stream_usage": True,
            "use_responses_api": self.responses,
        }

    supports_image_inputs = True
    supports_image_urls = True
    supports_image_tool_message = True
    supports_pdf_inputs = True
    supports_pdf_tool_message = True
    supports_audio_inputs = True
    supports_anthropic_inputs = True
    supports_json_mode = True
    has_tool_choice = True
    model_override_value = "other"


class TestRelayed(Standard):
    """Chat Completions, to a target that speaks them."""

    place = "relayed"

    @property
    def supported_usage_metadata_details(self) -> Any:
        told = ["reasoning_output", "cache_read_input"]
        return {"invoke": told, "stream": told}

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> Any:
        return _summed(self.chat_model_class(**self.chat_model_params), stream)

    invoke_with_cache_read_input = invoke_with_reasoning_output


class TestTranslated(Standard):
    """Chat Completions, to a target that speaks Anthropic Messages."""

    place = "translated"
    supports_audio_inputs = False


class TestResponses(Standard):
    """Responses, to a target that speaks Gemini."""

    place = "responses"
    responses = True


def _summed(model: BaseChatModel, stream: bool) -> Any:
    if not stream:
        return model.invoke("hello")
    first, *rest = model.stream("hello")
    for chunk in rest:
        first += chunk
    return first
