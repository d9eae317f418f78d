"""Anthropic's content blocks and our parts. Blocks we have no noun for become `Opaque`.

A thinking block without a signature is bound to nobody and is not sent back: Anthropic refuses
it, and it was most likely another vendor's thinking that a client had been shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.blobs import as_text, from_base64, to_base64
from understudy.dialects.calls import arguments_of, spelled
from understudy.dialects.data_url import read_data_url
from understudy.dialects.extras import given, kept
from understudy.dialects.json_access import Node, items, obj, text
from understudy.messages.parts import (
    NO_EXTRA,
    Extra,
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
from understudy.messages.sniff import kind_of

ISSUER = "anthropic"
_ID = re.compile(r"[^a-zA-Z0-9_-]")  # what Anthropic refuses in the id of a tool call


def read_block(node: Node) -> Part:
    """One content block; InvalidRequest where a field is of the wrong type."""
    read = _READERS.get(node["type"].text())
    return read(node) if read else Opaque(ISSUER, node.value)


def _read_text(node: Node) -> Part:
    return Text(node["text"].text(), kept(node.obj(), ("type", "text")))


def _read_image(node: Node) -> Part:
    source, extra = node["source"], kept(node.obj(), ("type", "source"))
    match source["type"].text():
        case "base64":
            data, mime = from_base64(source["data"]), source["media_type"].opt_text() or ""
            return Image(data=data, mime=mime, extra=extra)
        case "url":
            return Image(url=source["url"].text(), extra=extra)
    return Opaque(ISSUER, node.value, vital=True)


def _read_document(node: Node) -> Part:
    source, name = node["source"], node["title"].opt_text() or ""
    extra = kept(node.obj(), ("type", "source", "title"))
    match source["type"].text():
        case "base64":
            data, mime = from_base64(source["data"]), source["media_type"].opt_text() or ""
            return File(data=data, mime=mime, name=name, extra=extra)
        case "text":
            data, mime = source["data"].text().encode(), source["media_type"].opt_text() or ""
            return File(data=data, mime=mime or "text/plain", name=name, extra=extra)
        case "url":
            url = source["url"].text()
            return File(url=url, mime="application/pdf", name=name, extra=extra)
        case "content" if said := _told(source["content"]):  # in chunks of the client's own
            whole = {**extra, "source": source.value}
            return File(data=said.encode(), mime="text/plain", name=name, extra=whole)
    return Opaque(ISSUER, node.value, vital=True)


def _read_upload(node: Node) -> Part:
    return Opaque(ISSUER, node.value, vital=True)


def _read_search_result(node: Node) -> Part:
    """What a client found and shows: for others a text, for Anthropic the block as it came."""
    said = _told(node["content"])
    if not said:
        return Opaque(ISSUER, node.value)
    lines = (node["title"].opt_text(), node["source"].opt_text(), said)
    return Text("".join(f"{line}\n" for line in lines if line), node.obj())


def _told(node: Node) -> str:
    """What a text or a list of text blocks says; "" if anything else is in it."""
    if isinstance(node.value, str):
        return node.value
    blocks = [obj(block) for block in items(node.value)]
    said = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    return "\n\n".join(said) if len(said) == len(blocks) else ""


def _read_thinking(node: Node) -> Part:
    signature = node["signature"].opt_text() or ""
    extra = kept(node.obj(), ("type", "thinking", "signature"))
    issuer = ISSUER if signature else ""
    return Reasoning(node["thinking"].opt_text() or "", issuer, signature, extra=extra)


def _read_redacted(node: Node) -> Part:
    extra = kept(node.obj(), ("type", "data"))
    return Reasoning(issuer=ISSUER, data=node["data"].text(), extra=extra)


def _read_call(node: Node) -> Part:
    extra = kept(node.obj(), ("type", "id", "name", "input"))
    arguments = spelled(node["input"].value)
    issuer = ISSUER if extra else ""
    return ToolCall(node["id"].text(), node["name"].text(), arguments, issuer, extra)


def _read_result(node: Node) -> Part:
    content, whole = _result_content(node["content"])
    extra = dict(kept(node.obj(), ("type", "tool_use_id", "content", "is_error")))
    if not whole:
        extra["content"] = node["content"].value
    return ToolResult(
        node["tool_use_id"].text(),
        content=content,
        is_error=bool(node["is_error"].opt_flag()),
        extra=extra or NO_EXTRA,
    )


def _result_content(node: Node) -> tuple[tuple[Text | Image | File, ...], bool]:
    """What a result holds, and whether that is all of it (search results and the like are not)."""
    if isinstance(node.value, str):
        return (Text(node.value),), True
    parts = [read_block(block) for block in node.opt_nodes()]
    content = tuple(part for part in parts if isinstance(part, Text | Image | File))
    return content, len(content) == len(parts)


_READERS: dict[str, Callable[[Node], Part]] = {
    "text": _read_text,
    "image": _read_image,
    "document": _read_document,
    "search_result": _read_search_result,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "container_upload": _read_upload,
}


def is_welcome(part: Part) -> bool:
    """Whether a part may go to Anthropic: no blank text, nothing bound to others (contract M6)."""
    match part:
        case Text():
            return bool(part.text.strip())
        case Reasoning():
            return part.issuer == ISSUER and bool(part.signature or part.data)
        case Opaque():
            return part.issuer == ISSUER
    return True


def write_block(part: Part, same: bool) -> dict[str, Json] | None:
    """A block, or None for what is not welcome. `same`: the extras are Anthropic's."""
    if not is_welcome(part):
        return None
    match part:
        case Text(extra={"type": str()}) if same:  # it came as a block of another kind
            return dict(part.extra)
        case Text():
            block: dict[str, Json] = {"type": "text", "text": part.text}
        case Image():
            block = {"type": "image", "source": _image_source(part)}
        case File():
            block = _write_file(part)
        case ToolResult():
            block = _write_result(part, same)
        case Reasoning():
            return _write_reasoning(part)
        case ToolCall():
            return write_call(part, same)
        case Opaque():
            return obj(part.value)
    return {**block, **part.extra} if same else block


def _image_source(part: Image | File) -> dict[str, Json]:
    data, mime = read_data_url(part.url) or (part.data, part.mime or kind_of(part.data))
    if part.url and not data:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": mime, "data": to_base64(data)}


def _write_file(part: File) -> dict[str, Json]:
    if part.mime.startswith("image/"):
        return {"type": "image", "source": _image_source(part)}
    text = as_text(part.data, part.mime)
    source: dict[str, Json]
    if part.url:
        source = {"type": "url", "url": part.url}
    elif text is not None:
        source = {"type": "text", "media_type": "text/plain", "data": text}
    elif part.mime == "application/pdf":
        source = {"type": "base64", "media_type": part.mime, "data": to_base64(part.data)}
    else:
        unfit = f"anthropic takes no file of type {part.mime or 'unknown'!r}"
        raise ProviderError(Fault.UNSUPPORTED, message=unfit)
    return {"type": "document", "source": source, **given(title=part.name)}


def _write_reasoning(part: Reasoning) -> dict[str, Json]:
    if part.data:
        return {"type": "redacted_thinking", "data": part.data, **part.extra}
    signed: dict[str, Json] = {"thinking": part.text, "signature": part.signature}
    return {"type": "thinking", **signed, **part.extra}


def write_call(part: ToolCall, same: bool) -> dict[str, Json]:
    call: dict[str, Json] = {
        "id": safe_id(part.id),
        "name": part.name,
        "input": arguments_of(part),
    }
    own = part.issuer == ISSUER or (same and not part.issuer)
    extra: Extra = part.extra if own else NO_EXTRA
    return {"type": "tool_use", **call, **extra}


def _write_result(part: ToolResult, same: bool) -> dict[str, Json]:
    block: dict[str, Json] = {"type": "tool_result", "tool_use_id": safe_id(part.id)}
    match part.content:
        case ():
            pass
        case (Text(text=text, extra=extra),) if not (extra and same):
            block["content"] = text
        case _:
            written = (write_block(item, same) for item in part.content)
            block["content"] = [item for item in written if item is not None]
    if part.is_error:
        block["is_error"] = True
    return block


def safe_id(call_id: str) -> str:
    """An id Anthropic accepts: other vendors put dots and colons into theirs."""
    return _ID.sub("_", call_id) or "call"
