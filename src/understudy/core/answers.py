"""Does a 200 hold an answer? Content, an end, or an error in its place; every vendor's shape.

Looks at shapes only, for the classifier: nothing is converted, no text is kept. What a dialect
reads properly is not its concern.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

# A dict with one of these is an answer, or a piece of one.
SHAPES = (
    "choices",
    "candidates",
    "output",
    "content",
    "message",
    "response",
    "results",
    "generations",
    "generated_text",
    "completion",
    "embeddings",
    "promptFeedback",
    "delta",
    "text",
    "usage",
    "usageMetadata",
)
TEXTS = ("content", "text", "output_text", "generated_text", "completion", "outputText", "refusal")
MORE_TEXTS = ("generation", "transcript", "partial_json", "arguments", "data", "b64_json")
THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
CALLS = (
    "tool_calls",
    "function_call",
    "functionCall",
    "toolUse",
    "tool_use",
    "inlineData",
    "audio",
)
INSIDE = (
    "choices",
    "candidates",
    "message",
    "delta",
    "content",
    "parts",
    "output",
    "results",
    "generations",
    "content_block",
    "item",
    "token",
    "contentBlockDelta",
    "data",
)
CALL_TYPES = ("tool_use", "function_call", "custom_tool_call", "server_tool_use", "image")
ENDS = ("message_stop", "response.completed", "response.incomplete", "message-end", "stream-end")
FAILED_TYPES = ("error", "response.failed", "exception")
FAILED_ENDS = ("error", "network_error", "insufficient_system_resource")  # as finish reasons
SAYS_SO = (
    *("error", "errors", "detail", "error_code", "errorCode", "Error"),
    *("error_message", "errorMessage", "error_msg"),
)
ENVELOPES = ("Response", "response", "header", "x_groq")  # of Tencent, routers, iFlytek, Groq


@dataclass(frozen=True, slots=True)
class Answer:
    """What was seen of an answer, in a body or in a stream so far."""

    seen: bool = False  # something shaped like an answer, full or empty
    content: bool = False  # text, a tool call, an image
    thought: bool = False  # reasoning only
    ended: bool = False  # a finish reason or a terminator

    def and_then(self, other: Answer) -> Answer:
        return Answer(
            self.seen or other.seen,
            self.content or other.content,
            self.thought or other.thought,
            self.ended or other.ended,
        )


NO_ANSWER = Answer()


def read_answer(value: object) -> Answer:
    """What one JSON value, whole answer or stream chunk, holds."""
    seen = content = thought = ended = False
    for node in islice(_nodes(value, 0), 64):
        seen = seen or not node or any(key in node for key in SHAPES)
        content = content or _content(node)
        thought = thought or any(_words(node.get(key)) for key in THOUGHTS)
        ended = ended or _ended(node)
    return Answer(seen, content, thought, ended)


def failed(value: object) -> bool:
    """Does this JSON value say itself that it is an error?"""
    if isinstance(value, list):
        return any(failed(item) for item in islice(value, 4) if isinstance(item, dict))
    if not isinstance(value, dict):
        return False
    return (
        any(value.get(key) for key in SAYS_SO)
        or value.get("type") in FAILED_TYPES
        or value.get("status") == "error"
        or value.get("event") in FAILED_TYPES
        or value.get("object") == "error"
        or value.get("success") is False
        or _vendor_failed(value)
    )


def _vendor_failed(value: dict[object, object]) -> bool:
    native = value.get("base_resp")
    if isinstance(native, dict) and native.get("status_code"):
        return True
    choices = value.get("choices")
    if isinstance(choices, list) and any(_choice_failed(c) for c in islice(choices, 8)):
        return True
    coded = value.get("code") not in (None, 0, "", 200, "200", "0", "ok", "success")
    if coded and isinstance(value.get("message", value.get("msg")), str):
        return True
    wrapped = any(isinstance(value.get(key), dict) and failed(value[key]) for key in ENVELOPES)
    return wrapped or any(str(key).endswith("Exception") for key in islice(value, 8))


def _choice_failed(choice: object) -> bool:
    return isinstance(choice, dict) and (
        bool(choice.get("error"))
        or choice.get("finish_reason") in FAILED_ENDS
        or choice.get("native_finish_reason") in FAILED_ENDS
    )


def _nodes(value: object, depth: int) -> Iterator[dict[object, object]]:
    """The dicts in which an answer keeps its content, outermost first."""
    if isinstance(value, list):
        for item in islice(value, 32):
            if isinstance(item, dict):  # no vendor nests lists, only hostile bodies do
                yield from _nodes(item, depth + 1)
    elif isinstance(value, dict) and depth < 12:
        yield value
        for key in INSIDE:
            if isinstance(value.get(key), dict | list):
                yield from _nodes(value[key], depth + 1)
        response = value.get("response")
        if isinstance(response, dict):
            yield from _nodes(response, depth + 1)


def _content(node: dict[object, object]) -> bool:
    thinking = node.get("thought") is True or str(node.get("type", "")).startswith("reason")
    if thinking:
        return False
    kind = str(node.get("type", ""))
    delta = node.get("delta")
    return (
        any(_words(node.get(key)) for key in (*TEXTS, *MORE_TEXTS))
        or any(node.get(key) for key in CALLS)
        or kind in CALL_TYPES
        or (kind.endswith(".delta") and "reasoning" not in kind and _words(delta))
        or _words(node.get("response"))  # Ollama's generate
        or bool(node.get("embedding") or node.get("embeddings"))
    )


def _ended(node: dict[object, object]) -> bool:
    reasons = ("finish_reason", "finishReason", "stop_reason", "done_reason")
    return (
        any(node.get(key) for key in reasons)
        or node.get("done") is True
        or node.get("type") in ENDS
    )


def _words(value: object) -> bool:
    """Text that is not blank. Blank text is no content."""
    return isinstance(value, str) and bool(value[:4_096].strip())
