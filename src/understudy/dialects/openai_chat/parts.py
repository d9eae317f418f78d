"""What a Chat Completions message is made of, read leniently and written back. Knows no request.

The same reading serves histories, whole answers and, in pieces, streams. Unknown parts become
`Opaque` and go back to this wire only.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.dialects.blobs import as_text, name_for, read_base64
from understudy.dialects.calls import made_up, raw_arguments, spelled
from understudy.dialects.data_url import file_at, image_at, write_data_url
from understudy.dialects.input_audio import read_input_audio, write_input_audio
from understudy.dialects.json_access import encode, items, obj, text, without
from understudy.messages.parts import (
    NO_EXTRA,
    File,
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
)

ISSUER = "openai"


def read_content(content: Json) -> list[Part]:
    """Text, typed parts, or (Cloudflare with a JSON schema) the object itself."""
    if isinstance(content, str):
        return [Text(content)] if content else []
    if isinstance(content, dict):
        return [Text(encode(content).decode())]
    return [part for item in items(content) if (part := read_part(item)) is not None]


def read_part(value: Json) -> Part | None:
    if isinstance(value, str):
        return Text(value) if value else None
    item = obj(value)
    kind = text(item.get("type"))
    read = _READERS.get(kind)
    known = read(item) if read else None
    return known or (Opaque(ISSUER, value, vital=kind in _MEDIA) if value else None)


def _read_text(item: dict[str, Json]) -> Part | None:
    found = item.get("text")
    return Text(found) if isinstance(found, str) else None


def _read_image(item: dict[str, Json]) -> Part | None:
    inner = item.get("image_url")
    url = text(inner) or text(obj(inner).get("url"))
    detail = obj(inner).get("detail")
    return image_at(url, {"detail": detail} if detail is not None else NO_EXTRA)


def _read_file(item: dict[str, Json]) -> Part | None:
    inner = obj(item.get("file"))
    return file_at(text(inner.get("file_data")), text(inner.get("filename")))


def _read_document(item: dict[str, Json]) -> Part | None:
    """Mistral's word for a PDF behind a URL."""
    inner = item.get("document_url")
    url = text(inner) or text(obj(inner).get("url"))
    return file_at(url, text(item.get("document_name")))


def _read_video(item: dict[str, Json]) -> Part | None:
    url = text(item.get("video_url")) or text(obj(item.get("video_url")).get("url"))
    return file_at(url, mime="video/mp4")


def _read_thinking(item: dict[str, Json]) -> Part | None:
    """Mistral's reasoning stands among the parts of the content."""
    inner = item.get("thinking")
    thought = "".join(text(obj(piece).get("text")) for piece in items(inner)) or text(inner)
    return Reasoning(thought, ISSUER, extra=item)


_READERS: dict[str, Callable[[dict[str, Json]], Part | None]] = {
    "text": _read_text,
    "output_text": _read_text,
    "input_text": _read_text,
    "image_url": _read_image,
    "input_audio": read_input_audio,
    "file": _read_file,
    "document_url": _read_document,
    "video_url": _read_video,
    "thinking": _read_thinking,
}

# What of these we cannot read is known to the vendor by an id.
_MEDIA = frozenset(("image_url", "input_audio", "file", "document_url", "video_url"))


def write_part(part: Part, same: bool) -> Json:
    """A typed part, or None for what has no place here. `same`: the extras are this wire's."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            inner: dict[str, Json] = {"url": part.url or write_data_url(part.data, part.mime)}
            return {"type": "image_url", "image_url": inner | (dict(part.extra) if same else {})}
        case File():
            return _write_file(part, same)
        case Reasoning() if part.extra.get("type") == "thinking" and part.issuer == ISSUER:
            return dict(part.extra)
        case Opaque() if part.issuer == ISSUER:
            return part.value
    return None


def _write_file(part: File, same: bool) -> Json:
    if part.mime.startswith("audio/") and part.data:
        return write_input_audio(part)
    url = part.url or (write_data_url(part.data, part.mime) if part.data else "")
    if not url:
        return None
    if part.mime.startswith("video/"):
        return {"type": "video_url", "video_url": {"url": url}}
    if not same and (said := as_text(part.data, part.mime)):
        return {"type": "text", "text": said}  # of files OpenAI takes PDFs only
    name = part.name if same else part.name or name_for(part.mime)
    named: dict[str, Json] = {"filename": name} if name else {}
    return {"type": "file", "file": {"file_data": url, **named}}


# Reasoning beside the content. Vendors have three names for it and may use two at once.
REASONING = ("reasoning_content", "reasoning", "reasoning_details")
LEGACY = "function_call"  # from before there were tools: one call a message, without an id
# What is read of a message; any other field rides along.
FIELDS = frozenset(("role", "content", "tool_calls", LEGACY, "audio", "images", *REASONING))


def read_reasoning(message: dict[str, Json]) -> Reasoning | None:
    """The first name that holds text counts; fields we would not write alike ride in `extra`."""
    found = {name: message[name] for name in REASONING if message.get(name)}
    if not found:
        return None
    thought = reasoning_text(message)
    plain = set(found) == {"reasoning_content"} and found["reasoning_content"] == thought
    return Reasoning(thought, ISSUER, extra=NO_EXTRA if plain else found)


def reasoning_text(message: dict[str, Json]) -> str:
    said = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return said or details_text(message.get("reasoning_details"))


def details_text(details: Json) -> str:
    """OpenRouter's details: text, or a summary of what is encrypted."""
    pieces = (obj(item) for item in items(details))
    return "".join(text(piece.get("text")) or text(piece.get("summary")) for piece in pieces)


def read_calls(message: dict[str, Json], place: str) -> list[ToolCall]:
    """The client's tool calls; nameless ones are dropped, missing ids made up from `place`."""
    calls = [obj(call) for call in items(message.get("tool_calls"))]
    legacy = obj(message.get(LEGACY))
    if legacy and not calls:
        calls = [{"type": LEGACY, "function": legacy}]
    read = (read_call(call, place, index) for index, call in enumerate(calls))
    return [call for call in read if call.name]


_CALL = frozenset(("id", "type", "function", "custom", "index"))


def read_call(call: dict[str, Json], place: str, index: int) -> ToolCall:
    extra = dict(without(call, _CALL))
    kind = call.get("type")
    if kind in ("custom", LEGACY):
        extra["type"] = kind
    if kind == "custom":
        inner = obj(call.get("custom"))
        arguments = text(inner.get("input"))
    else:
        inner = obj(call.get("function"))
        arguments = spelled(inner.get("arguments"))
    name = text(inner.get("name"))
    found = text(call.get("id")) or made_up(place, index, name, arguments)
    return ToolCall(found, name, arguments, ISSUER if extra else "", extra or NO_EXTRA)


def write_call(call: ToolCall, same: bool) -> dict[str, Json]:
    own = call.issuer == ISSUER or (same and not call.issuer)
    extra = dict(call.extra) if own else {}
    if extra.pop("type", "") == "custom":
        inner: dict[str, Json] = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": inner, **extra}
    inner = {"name": call.name, "arguments": raw_arguments(call)}
    return {"id": call.id, "type": "function", "function": inner, **extra}


def write_legacy(call: ToolCall) -> dict[str, Json]:
    return {LEGACY: {"name": call.name, "arguments": call.arguments}}


def is_legacy(call: ToolCall) -> bool:
    return call.issuer == ISSUER and call.extra.get("type") == LEGACY


def read_sound(message: dict[str, Json]) -> list[Part]:
    """Spoken answers: the bytes, the rest (id, transcript) in `extra`."""
    audio = obj(message.get("audio"))
    data = read_base64(text(audio.get("data"))) or b""
    if not data and not text(audio.get("id")):
        return []
    return [File(data, extra={"audio": dict(without(audio, ("data",)))})]


def read_pictures(message: dict[str, Json]) -> list[Part]:
    """Painted answers, as OpenRouter sends them."""
    found = (read_part(item) for item in items(message.get("images")))
    return [part for part in found if isinstance(part, Image)]
