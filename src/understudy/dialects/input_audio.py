"""Sound from a user, the same on both of OpenAI's wires: base64, and a word for its format."""

from __future__ import annotations

from understudy.dialects.blobs import read_base64, to_base64
from understudy.dialects.json_access import obj, text
from understudy.messages.parts import File, Json

_TYPES = {"mp3": "audio/mpeg"}  # whose word is not the second half of the media type
_WORDS = {mime: word for word, mime in _TYPES.items()}


def read_input_audio(part: dict[str, Json]) -> File | None:
    inner = obj(part.get("input_audio"))
    data, form = read_base64(text(inner.get("data"))), text(inner.get("format"))
    return File(data, _TYPES.get(form, f"audio/{form}")) if data and form else None


def write_input_audio(part: File) -> dict[str, Json]:
    form = _WORDS.get(part.mime, part.mime.removeprefix("audio/"))
    sound: dict[str, Json] = {"data": to_base64(part.data), "format": form}
    return {"type": "input_audio", "input_audio": sound}
