"""A request whose dialect nobody named, as people paste it: told by the fields it has."""

from __future__ import annotations

from understudy.core.errors import InvalidRequest
from understudy.dialects.json_access import Node, items, obj, text
from understudy.dialects.table import dialect_named
from understudy.messages.parts import Json
from understudy.messages.request import Request

# The field that tells a dialect from the others; three of them share `messages`.
TELLING = {"contents": ("gemini",), "input": ("responses",), "messages": ("openai", "anthropic")}
# Kinds of blocks that only Anthropic's messages have; to OpenAI's they would be strange and empty.
BLOCKS = frozenset(("image", "document", "tool_use", "tool_result", "thinking"))


def request_in(body: bytes) -> Request:
    """A request in any dialect a client may speak; InvalidRequest names what is wrong."""
    found = Node.root(body).obj()
    first: InvalidRequest | None = None
    for name in _names(found):
        try:
            return dialect_named(name).read_request(body, "model").request
        except InvalidRequest as error:
            first = first or error
    known = ", ".join(TELLING)
    raise first or InvalidRequest(f"the request has none of {known}; is it one for a model?")


def _names(found: dict[str, Json]) -> tuple[str, ...]:
    """The dialects it may be in, the likelier first."""
    field = next((field for field in TELLING if field in found), "")
    if field != "messages":
        return TELLING.get(field, ())
    messages = [obj(message) for message in items(found["messages"])]
    if any("images" in message for message in messages):
        return ("ollama",)
    blocks = [obj(block) for message in messages for block in items(message.get("content"))]
    if "system" in found or any(text(block.get("type")) in BLOCKS for block in blocks):
        return ("anthropic",)
    return TELLING[field]
