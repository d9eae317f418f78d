"""Neutral requests and answers that the OpenAI wires can express exactly, for round trips."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from hypothesis import strategies as st

from understudy.dialects.json_access import encode
from understudy.messages.parts import (
    File,
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import Message, Request, Schema, ServerTool, Tool, ToolChoice
from understudy.messages.response import (
    Event,
    FinishReason,
    ReasoningDelta,
    Response,
    TextDelta,
    Usage,
)

# Halves of surrogate pairs are no text; the rest of Unicode is.
letters = st.characters(exclude_categories=["Cs"])
texts = st.text(letters, min_size=1, max_size=20).filter(lambda t: not t.startswith("ERROR: "))
words = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,11}", fullmatch=True)
counts = st.integers(0, 10**9)
rates = st.floats(0, 2, allow_nan=False)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[dict[str, Json]] = st.dictionaries(words, json_values, max_size=3)
arguments = objects.map(lambda value: encode(value).decode())
data = st.binary(min_size=1, max_size=12)
urls = words.map(lambda word: f"https://example.com/{word}.png")

text_parts = st.builds(Text, texts)
details: st.SearchStrategy[dict[str, Json]] = st.sampled_from(({}, {"detail": "low"}))
images = st.one_of(
    st.builds(Image, data, st.sampled_from(("image/png", "image/jpeg")), extra=details),
    st.builds(Image, url=urls, extra=details),
)
files = st.one_of(
    st.builds(File, data, st.just("application/pdf"), name=st.sampled_from(("", "a.pdf"))),
    st.builds(File, data, st.sampled_from(("audio/wav", "audio/mpeg"))),
)


def calls(extra: bool, issuer: str) -> st.SearchStrategy[ToolCall]:
    plain = st.builds(ToolCall, st.uuids().map(str), words, arguments)
    bound = st.builds(
        lambda call, note: ToolCall(
            call.id, call.name, call.arguments, issuer, {"extra_content": note}
        ),
        plain,
        objects,
    )
    return st.one_of(plain, bound) if extra else plain


def thoughts(issuer: str) -> st.SearchStrategy[Reasoning]:
    return st.builds(Reasoning, texts, st.just(issuer))


def results(call: ToolCall) -> st.SearchStrategy[Message]:
    """One message a result, as both wires have it."""
    content = st.lists(st.one_of(text_parts, images), max_size=2).map(tuple)
    made = st.builds(
        ToolResult, st.just(call.id), st.just(call.name), content, is_error=st.booleans()
    )
    return made.map(lambda result: Message("tool", (result,)))


@st.composite
def conversations(draw: st.DrawFn, issuer: str, ordered: bool) -> tuple[Message, ...]:
    """Users speak, assistants answer or call, calls are answered. `ordered`: thoughts, texts,
    calls (Chat); otherwise in any order (Responses)."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(
            Message("system", tuple(draw(st.lists(text_parts, min_size=1, max_size=2))))
        )
    opaque = st.just(Opaque(issuer, {"type": "unheard_of", "value": 1}))
    for _ in range(draw(st.integers(1, 3))):
        said = st.lists(st.one_of(text_parts, images, files, opaque), min_size=1, max_size=3)
        messages.append(Message("user", tuple(draw(said))))
        thought: list[Part] = list(draw(st.lists(thoughts(issuer), max_size=1)))
        spoken: list[Part] = list(draw(st.lists(text_parts, max_size=2)))
        called = draw(st.lists(calls(True, issuer), max_size=2))
        parts: list[Part] = [*thought, *spoken, *called]
        if parts:
            if not ordered:
                parts = draw(st.permutations(parts))
            messages.append(Message("assistant", tuple(parts)))
        messages += [draw(results(part)) for part in parts if isinstance(part, ToolCall)]
    return tuple(messages)


def tools(issuer: str) -> st.SearchStrategy[tuple[Tool | ServerTool, ...]]:
    described = st.one_of(st.just(""), texts)
    made = st.builds(Tool, words, described, st.one_of(st.none(), objects))
    served = st.just(ServerTool(issuer, {"type": "web_search"}))
    return st.lists(st.one_of(made, made, served), max_size=3).map(tuple)


choices = st.one_of(
    st.none(),
    st.builds(
        ToolChoice,
        st.sampled_from(("auto", "none", "required")),
        parallel=st.sampled_from((None, True, False)),
    ),
    st.builds(ToolChoice, st.just("tool"), words, st.sampled_from((None, True, False))),
)
schemas = st.one_of(
    st.none(),
    st.just(Schema()),
    st.builds(
        Schema, objects, words, st.sampled_from((None, True)), st.one_of(st.just(""), texts)
    ),
)
efforts = st.sampled_from((None, "none", "minimal", "low", "medium", "high"))


@st.composite
def chat_requests(draw: st.DrawFn) -> Request:
    return Request(
        messages=draw(conversations("openai", ordered=True)),
        tools=draw(tools("openai")),
        tool_choice=draw(choices),
        output=draw(schemas),
        max_tokens=draw(st.one_of(st.none(), counts)),
        temperature=draw(st.one_of(st.none(), rates)),
        top_p=draw(st.one_of(st.none(), rates)),
        top_k=draw(st.one_of(st.none(), counts)),
        stop=tuple(draw(st.lists(texts, max_size=2))),
        seed=draw(st.one_of(st.none(), counts)),
        reasoning=draw(efforts),
        reasoning_tokens=draw(st.one_of(st.none(), counts)),
        user=draw(st.one_of(st.none(), texts)),
        issuer="openai",
        extra=draw(st.sampled_from(({}, {"logit_bias": {"1": 2}, "n": 2}))),
    )


@st.composite
def responses_requests(draw: st.DrawFn) -> Request:
    return Request(
        messages=draw(conversations("responses", ordered=False)),
        tools=draw(tools("responses")),
        tool_choice=draw(choices),
        output=draw(schemas),
        max_tokens=draw(st.one_of(st.none(), counts)),
        temperature=draw(st.one_of(st.none(), rates)),
        top_p=draw(st.one_of(st.none(), rates)),
        reasoning=draw(efforts),
        user=draw(st.one_of(st.none(), texts)),
        issuer="responses",
        extra=draw(st.sampled_from(({}, {"store": False, "include": ["x"]}))),
    )


usages = st.one_of(
    st.none(),
    # What was read from a cache is among the input here.
    st.builds(Usage, counts, counts, cache_read=counts, cache_write=counts, reasoning=counts).map(
        lambda usage: replace(usage, cache_read=min(usage.cache_read, usage.input))
    ),
)
CHAT_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "odd": "other",
}
RESPONSES_FINISHES: dict[str, FinishReason] = {
    "completed": "stop",
    "incomplete:max_output_tokens": "length",
    "incomplete:content_filter": "content_filter",
    "incomplete:odd": "other",
}


@st.composite
def chat_responses(draw: st.DrawFn, streamed: bool = False) -> Response:
    """`streamed`: one thought and one text at most, for deltas do not tell where one ends."""
    thought: list[Part] = list(draw(st.lists(thoughts("openai"), max_size=1)))
    spoken: list[Part] = list(draw(st.lists(text_parts, max_size=1 if streamed else 2)))
    painted: list[Part] = list(draw(st.lists(images, max_size=1)))
    raw = draw(st.sampled_from(sorted(CHAT_FINISHES)))
    return Response(
        parts=(*thought, *spoken, *painted, *draw(st.lists(calls(True, "openai"), max_size=3))),
        finish_reason=CHAT_FINISHES[raw],
        finish_raw=raw,
        usage=draw(usages),
        model=draw(words),
        refusal=draw(st.one_of(st.just(""), texts)),
        id=draw(words),
        issuer="openai",
    )


@st.composite
def responses_responses(draw: st.DrawFn, streamed: bool = False) -> Response:
    part = st.one_of(text_parts, thoughts("responses"), calls(False, ""))
    parts = draw(st.lists(part, max_size=4))
    if streamed:  # neighbours of one kind would grow together
        parts = [
            kept
            for kind, group in groupby(parts, type)
            for kept in (group if kind is ToolCall else [next(group)])
        ]
    raw = draw(st.sampled_from(sorted(RESPONSES_FINISHES)))
    called = any(isinstance(kept, ToolCall) for kept in parts)
    finish = "tool_calls" if called and raw == "completed" else RESPONSES_FINISHES[raw]
    return Response(
        parts=tuple(parts),
        finish_reason=finish,
        finish_raw=raw,
        usage=draw(usages),
        model=draw(words),
        refusal=draw(st.one_of(st.just(""), texts)),
        id=draw(words),
        issuer="responses",
    )


def told_in_pieces(response: Response, size: int) -> list[Event]:
    """The events of an answer, its texts in pieces of `size` characters, itself last."""
    events: list[Event] = []
    for part in response.parts:
        match part:
            case Text(text=said):
                events += [TextDelta(said[i : i + size]) for i in range(0, len(said), size)]
            case Reasoning(text=said):
                events += [ReasoningDelta(said[i : i + size]) for i in range(0, len(said), size)]
            case ToolCall():
                events.append(part)
    return [*events, response]
