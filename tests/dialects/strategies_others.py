"""Requests and responses that the Gemini and Ollama dialects can express exactly."""

from __future__ import annotations

from hypothesis import strategies as st
from strategies_more import (
    Parts,
    bound,
    choices,
    conversations,
    counts,
    data,
    extras,
    letters,
    maybe_count,
    maybe_share,
    names,
    objects,
    opaques,
    stops,
    system,
    tools_of,
    urls,
    words,
)

from understudy.messages.parts import (
    File,
    Image,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import (
    Message,
    Request,
    Role,
    Schema,
    Tool,
)
from understudy.messages.response import Response, Usage

PNG = b"\x89PNG\r\n\x1a\n"

# Gemini

_signed = extras("thoughtSignature", "partMetadata")
g_text = st.one_of(st.builds(Text, words, _signed), st.builds(Text, st.text(letters)))
g_media = st.one_of(
    st.builds(lambda d, e: Image(d, "image/webp", extra=e), data, extras("mediaResolution")),
    st.builds(lambda u: Image(mime="image/png", url=u), urls),
    st.builds(lambda d: File(d, "audio/wav"), data),
    st.builds(lambda d: File(d, "video/mp4", name="film.mp4"), data),
    st.builds(lambda u: File(mime="application/pdf", url=u), urls),
    st.builds(lambda u: File(url=u), urls),
)
g_thought = st.one_of(
    st.builds(lambda t: Reasoning(t, "gemini"), words),
    st.builds(lambda t, s: Reasoning(t, "gemini", s), words, words),
    st.builds(lambda s: Reasoning("", "gemini", s), words),
)
g_call = bound("gemini", names, "thoughtSignature")
g_opaque = opaques("gemini", {"executableCode": {"code": "1"}})


def g_result(call: ToolCall) -> st.SearchStrategy[ToolResult]:
    return st.builds(
        lambda t, m, e: ToolResult(call.id, call.name, (Text(t), *m), e),
        st.text(letters),
        st.lists(st.builds(lambda d: Image(d, "image/png"), data), max_size=1),
        st.booleans(),
    )


@st.composite
def gemini_requests(draw: st.DrawFn) -> Request:
    said: Parts = st.one_of(g_text, g_media, g_opaque)
    answered: Parts = st.one_of(g_text, g_thought, g_opaque)
    tools = draw(tools_of("gemini", {"googleSearch": {}}, "behavior"))
    called = any(isinstance(tool, Tool) for tool in tools)
    effort = draw(st.sampled_from((None, "none", "minimal", "high")))
    messages = [
        *draw(system(g_text, {"role": "user"})),
        *draw(conversations(said, answered, g_result, g_call)),
    ]
    return Request(
        messages=tuple(messages),
        tools=tools,
        tool_choice=draw(choices(parallel=False)) if called else None,
        output=draw(st.one_of(st.none(), st.just(Schema()), st.builds(Schema, objects))),
        max_tokens=draw(maybe_count),
        temperature=draw(maybe_share),
        top_p=draw(maybe_share),
        top_k=draw(maybe_count),
        stop=draw(stops),
        seed=draw(maybe_count),
        reasoning=effort,
        reasoning_tokens=None if effort else draw(st.one_of(st.none(), st.integers(1, 9999))),
        issuer="gemini",
        extra=draw(extras("cachedContent", "labels")),
    )


G_FINISHES = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "UNEXPECTED_TOOL_CALL": "other",
    "OTHER": "other",
}
g_shown = st.one_of(st.builds(Text, words, _signed), g_media, g_thought, g_call, g_opaque)


@st.composite
def gemini_responses(draw: st.DrawFn, parts: Parts = g_shown) -> Response:
    raw = draw(st.sampled_from(sorted(G_FINISHES)))
    spoken = tuple(draw(st.lists(parts, max_size=4)))
    called = raw == "STOP" and any(isinstance(part, ToolCall) for part in spoken)
    usage = Usage(
        draw(counts),
        draw(counts),
        cache_read=draw(counts),
        reasoning=draw(counts),
        tool_input=draw(counts),
        reasoning_apart=True,
    )
    return Response(
        parts=spoken,
        finish_reason="tool_calls" if called else G_FINISHES[raw],  # type: ignore[arg-type]
        finish_raw=raw,
        usage=draw(st.sampled_from((None, usage))),
        model=draw(words),
        id=draw(names),
        issuer="gemini",
        extra=draw(extras("createTime")),
    )


# Ollama

o_image = st.builds(lambda d: Image(PNG + d, "image/png"), data)
o_images = st.lists(o_image, max_size=2)
o_call = bound("ollama", names, "note")


def o_result(call: ToolCall) -> st.SearchStrategy[ToolResult]:
    texts = st.text(letters).filter(lambda text: not text.startswith("ERROR: "))
    return st.builds(
        lambda t, m, e: ToolResult(call.id, call.name, (Text(t), *m), e),
        texts,
        o_images,
        st.booleans(),
    )


@st.composite
def ollama_messages(draw: st.DrawFn) -> list[Message]:
    messages: list[Message] = []
    for index in range(draw(st.integers(1, 4))):
        role: Role = draw(st.sampled_from(("system", "user", "assistant")))
        parts: list[Part] = [Text(draw(words))] if draw(st.booleans()) else []
        calls: list[ToolCall] = []
        if role == "user":
            parts += draw(o_images)
        if role == "assistant":
            thoughts: list[Part] = (
                [Reasoning(draw(words), "ollama")] if draw(st.booleans()) else []
            )
            calls = [draw(bound("ollama", st.just(f"c{index}{n}"), "note")) for n in range(2)]
            calls = calls[: draw(st.integers(0, 2))]
            parts = [*thoughts, *parts, *calls]
        messages.append(Message(role, tuple(parts), draw(extras("note"))))
        if calls:
            messages.append(Message("tool", tuple(draw(o_result(call)) for call in calls)))
    return messages


@st.composite
def ollama_requests(draw: st.DrawFn) -> Request:
    return Request(
        messages=tuple(draw(ollama_messages())),
        tools=draw(tools_of("ollama", {"type": "other"}, "note")),
        output=draw(st.one_of(st.none(), st.just(Schema()), st.builds(Schema, objects))),
        max_tokens=draw(maybe_count),
        temperature=draw(maybe_share),
        top_p=draw(maybe_share),
        top_k=draw(maybe_count),
        stop=draw(stops),
        seed=draw(maybe_count),
        reasoning=draw(st.sampled_from((None, "none", "low", "medium", "high"))),
        issuer="ollama",
        extra=draw(extras("keep_alive", "logprobs")),
    )


@st.composite
def ollama_responses(draw: st.DrawFn) -> Response:
    thought: list[Part] = [Reasoning(draw(words), "ollama")] if draw(st.booleans()) else []
    said: list[Part] = [Text(draw(words))] if draw(st.booleans()) else []
    calls = draw(st.lists(o_call, max_size=2))
    raw = draw(st.sampled_from(("stop", "length", "load", "")))
    finishes = {"stop": "tool_calls" if calls else "stop", "length": "length"}
    return Response(
        parts=(*thought, *said, *calls),
        finish_reason=finishes.get(raw, "other"),  # type: ignore[arg-type]
        finish_raw=raw,
        usage=draw(st.one_of(st.none(), st.builds(Usage, counts, counts))),
        model=draw(words),
        issuer="ollama",
        extra=draw(extras("total_duration", "created_at")),
    )
