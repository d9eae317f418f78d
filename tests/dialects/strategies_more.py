"""What requests and responses are made of, and those that Messages can express exactly."""

from __future__ import annotations

from collections.abc import Callable

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
from understudy.messages.request import (
    Message,
    Request,
    Schema,
    ServerTool,
    Tool,
    ToolChoice,
)
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

letters = st.characters(codec="utf-8")
words = st.text(letters, min_size=1, max_size=12).filter(str.strip)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,9}", fullmatch=True)
counts = st.integers(0, 1 << 31)
shares = st.floats(0, 1, allow_nan=False)
leaves: st.SearchStrategy[Json] = st.one_of(
    st.booleans(), st.integers(-(1 << 53), 1 << 53), shares, st.text(letters, max_size=8)
)
values: st.SearchStrategy[Json] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.text(letters, max_size=6), inner, max_size=2),
    ),
    max_leaves=4,
)
objects: st.SearchStrategy[dict[str, Json]] = st.dictionaries(
    st.text(letters, max_size=6), values, max_size=3
)
arguments = objects.map(lambda it: encode(it).decode())
urls = names.map(lambda name: f"https://example.org/{name}")
data = st.binary(max_size=20)

Parts = st.SearchStrategy[Part]


def extras(*keys: str) -> st.SearchStrategy[dict[str, Json]]:
    """Fields a dialect does not know, most often none."""
    some = st.dictionaries(st.sampled_from(keys), words, max_size=2) if keys else st.just({})
    return st.one_of(st.just({}), some)


def opaques(issuer: str, kinds: dict[str, Json]) -> Parts:
    return st.builds(lambda more: Opaque(issuer, {**kinds, "more": more}), values)


@st.composite
def conversations(
    draw: st.DrawFn,
    said: Parts,
    answered: Parts,
    result: Callable[[ToolCall], st.SearchStrategy[ToolResult]],
    call: st.SearchStrategy[ToolCall],
) -> list[Message]:
    """Turns in alternation; calls are answered at once, in order, sometimes with a word more."""
    messages = [Message("user", tuple(draw(st.lists(said, min_size=1, max_size=3))))]
    used: set[str] = set()
    for _ in range(draw(st.integers(0, 2))):
        calls = draw(st.lists(call, max_size=2, unique_by=lambda c: c.id))
        calls = [call for call in calls if call.id not in used]
        used |= {call.id for call in calls}
        least = 0 if calls else 1
        spoken = draw(st.lists(answered, min_size=least, max_size=2))
        messages.append(Message("assistant", (*spoken, *calls)))
        if calls:
            messages.append(Message("tool", tuple(draw(result(c)) for c in calls)))
        if not calls or draw(st.booleans()):
            messages.append(Message("user", tuple(draw(st.lists(said, min_size=1, max_size=2)))))
    return messages


def system(text: Parts, extra: dict[str, Json]) -> st.SearchStrategy[list[Message]]:
    prompts = st.lists(text, min_size=1, max_size=2).map(
        lambda parts: [Message("system", tuple(parts), extra)]
    )
    return st.one_of(st.just([]), prompts)


def tools_of(
    issuer: str, served: Json, *extra: str
) -> st.SearchStrategy[tuple[Tool | ServerTool, ...]]:
    schemas = objects.map(lambda it: {**it, "type": "object"})
    ours = st.builds(
        Tool, names, st.one_of(st.just(""), words), st.one_of(st.none(), schemas), extras(*extra)
    )
    theirs = st.just(ServerTool(issuer, served))
    return st.lists(st.one_of(ours, ours, theirs), max_size=3).map(tuple)


def choices(*, parallel: bool) -> st.SearchStrategy[ToolChoice | None]:
    both = st.sampled_from((None, True, False)) if parallel else st.none()
    return st.one_of(
        st.none(),
        st.just(ToolChoice("none")),
        st.builds(lambda p: ToolChoice("auto", parallel=p), both),
        st.builds(lambda p: ToolChoice("required", parallel=p), both),
        st.builds(lambda name, p: ToolChoice("tool", name, p), names, both),
    )


maybe_share = st.one_of(st.none(), shares)
maybe_count = st.one_of(st.none(), counts)
stops = st.lists(words, max_size=2).map(tuple)

# Anthropic

_cached = extras("cache_control", "note")
a_text = st.builds(Text, words, _cached)
a_image = st.one_of(
    st.builds(lambda d, e: Image(d, "image/png", extra=e), data, _cached),
    st.builds(lambda u, e: Image(url=u, extra=e), urls, _cached),
)
a_file = st.one_of(
    st.builds(
        lambda d, n: File(d, "application/pdf", name=n), data, st.sampled_from(("", "a.pdf"))
    ),
    st.builds(lambda t: File(t.encode(), "text/plain"), words),
    st.builds(lambda u: File(url=u, mime="application/pdf"), urls),
)
a_thought = st.one_of(
    st.builds(lambda t, s: Reasoning(t, "anthropic", s), st.text(letters), words),
    st.builds(lambda d: Reasoning(issuer="anthropic", data=d), words),
)


def bound(issuer: str, ids: st.SearchStrategy[str], *keys: str) -> st.SearchStrategy[ToolCall]:
    return st.builds(
        lambda i, n, a, e: ToolCall(i, n, a, issuer if e else "", e),
        ids,
        names,
        arguments,
        extras(*keys),
    )


a_call = bound("anthropic", names, "caller", "cache_control")
a_opaque = opaques("anthropic", {"type": "server_tool_use", "id": "srv"})


def a_result(call: ToolCall) -> st.SearchStrategy[ToolResult]:
    media = st.one_of(a_text, a_image, a_file)
    content = st.one_of(st.lists(media, max_size=2).map(tuple), st.just((Text(""),)))
    return st.builds(
        lambda c, e, x: ToolResult(call.id, call.name, c, e, x), content, st.booleans(), _cached
    )


@st.composite
def anthropic_requests(draw: st.DrawFn) -> Request:
    said: Parts = st.one_of(a_text, a_text, a_image, a_file, a_opaque)
    answered: Parts = st.one_of(a_text, a_thought, a_opaque)
    tools = draw(tools_of("anthropic", {"type": "web_search_1", "name": "web"}, "strict"))
    effort = draw(st.sampled_from((None, "none", "low", "max")))
    messages = [
        *draw(system(a_text, {})),
        *draw(conversations(said, answered, a_result, a_call)),
    ]
    # By a budget Claude must have thought before the calls that are answered last.
    thinks = effort != "none" and not (messages and messages[-1].role == "tool")
    return Request(
        messages=tuple(messages),
        tools=tools,
        tool_choice=draw(choices(parallel=True)) if tools else None,
        output=draw(st.one_of(st.none(), st.builds(Schema, objects))),
        max_tokens=draw(counts),
        temperature=draw(maybe_share),
        top_p=draw(maybe_share),
        top_k=draw(maybe_count),
        stop=draw(stops),
        reasoning=effort,
        reasoning_tokens=draw(maybe_count) if thinks else None,
        user=draw(st.one_of(st.none(), words)),
        issuer="anthropic",
        extra=draw(extras("service_tier", "container")),
    )


A_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause_turn": "other",
    "": "other",
}
a_shown = st.one_of(
    st.builds(Text, words),
    st.builds(
        lambda t, c: Text(t, {"citations": [{"type": "page", "cited_text": c}]}), words, words
    ),
    a_thought,
    st.builds(Reasoning, words),
    a_call,
    a_opaque,
)


@st.composite
def anthropic_responses(draw: st.DrawFn, parts: Parts = a_shown) -> Response:
    raw = draw(st.sampled_from(sorted(A_FINISHES)))
    read, written = draw(counts), draw(counts)
    usage = Usage(draw(counts), draw(counts), read, written, cache_apart=True)
    return Response(
        parts=tuple(draw(st.lists(parts, max_size=4))),
        finish_reason=A_FINISHES[raw],  # type: ignore[arg-type]
        finish_raw=raw,
        usage=usage,
        model=draw(words),
        id=draw(names),
        issuer="anthropic",
        extra=draw(extras("container", "stop_sequence")),
    )


# Streams


def pieces(parts: tuple[Part, ...]) -> list[Event]:
    """The events of an answer, its texts in pieces."""
    events: list[Event] = []
    for part in parts:
        if isinstance(part, ToolCall):
            events.append(part)
        elif isinstance(part, Text | Reasoning):
            delta = TextDelta if isinstance(part, Text) else ReasoningDelta
            half = len(part.text) // 2
            events += [delta(t) for t in (part.text[:half], part.text[half:]) if t]
    return events


@st.composite
def spoken(draw: st.DrawFn, thought: st.SearchStrategy[Reasoning]) -> tuple[Part, ...]:
    """Parts a stream of deltas can tell: no two neighbours of one kind, but for calls."""
    parts: list[Part] = []
    calls = st.builds(ToolCall, names, names, arguments)
    for part in draw(st.lists(st.one_of(st.builds(Text, words), thought, calls), max_size=5)):
        if isinstance(part, ToolCall) or not parts or type(parts[-1]) is not type(part):
            parts.append(part)
    return tuple(parts)


def cuts(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, max(0, size)), max_size=12).map(sorted)
