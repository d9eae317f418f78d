"""What a Chat Completions stream has said so far, and the answer that is made of it at the end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from understudy.dialects.blobs import read_base64
from understudy.dialects.json_access import Wire, items, obj, text
from understudy.dialects.openai_chat.calls import CallSlots
from understudy.dialects.openai_chat.parts import (
    ISSUER,
    details_text,
    read_content,
    read_pictures,
)
from understudy.dialects.openai_chat.response import (
    FINISH,
    finish_word,
    read_usage,
    write_message,
)
from understudy.messages.parts import NO_EXTRA, Extra, File, Json, Part, Reasoning, Text
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

# Fields of a chunk that are ours already, or padding against eavesdroppers.
_CHUNK = frozenset(("id", "object", "model", "choices", "usage", "x_groq", "obfuscation", "p"))
_MOST_CHOICES = 128  # that OpenAI allows; no peer may have us open answers without end


@dataclass(slots=True)
class Answer:
    """One answer in the making. Only choice 0 gives events; the other choices are kept."""

    text: list[str] = field(default_factory=list)
    finish_raw: str = ""
    _thoughts: list[str] = field(default_factory=list)
    _named: dict[str, list[str]] = field(default_factory=dict)  # reasoning by the vendor's name
    _details: list[Wire] = field(default_factory=list)
    _among_parts: bool = False  # reasoning came inside the content (Mistral)
    _calls: CallSlots = field(default_factory=CallSlots)
    _parts: list[Part] = field(default_factory=list)
    _refusal: list[str] = field(default_factory=list)
    _sound: list[bytes] = field(default_factory=list)
    _audio: Wire = field(default_factory=dict)
    _others: dict[int, Answer] = field(default_factory=dict)
    _usage: Usage | None = None
    _id: str = ""
    model: str = ""
    _extra: Wire = field(default_factory=dict)

    def think(self, content: str | None, plain: str | None, events: list[Event]) -> None:
        """Reasoning under one of its names, or the same under both."""
        for name, said in (("reasoning_content", content), ("reasoning", plain)):
            if said:
                self._named.setdefault(name, []).append(said)
        self._think(content or plain or "", events)

    def _think(self, said: str, events: list[Event]) -> None:
        if said:
            self._thoughts.append(said)
            events.append(ReasoningDelta(said))

    def add(self, chunk: Wire, events: list[Event]) -> bool:
        """Take one chunk in; says whether it carried content."""
        self._id = self._id or text(chunk.get("id"))
        self.model = self.model or text(chunk.get("model"))
        # Several vendors repeat a running total: the last one counts, they do not add up.
        self._usage = read_usage(chunk) or self._usage
        self._extra.update({k: v for k, v in chunk.items() if k not in _CHUNK and v is not None})
        carried = [self._add_choice(obj(c), events) for c in items(chunk.get("choices"))]
        return any(carried)

    def _add_choice(self, choice: Wire, events: list[Event]) -> bool:
        delta = obj(choice.get("delta"))
        index = choice.get("index")
        if isinstance(index, int) and index > 0:
            if index < _MOST_CHOICES:
                other = self._others.setdefault(index, Answer())
                other._add_choice({**choice, "index": 0}, [])
            return False
        if not delta and not self.text:
            delta = obj(choice.get("message"))
        self.finish_raw = text(choice.get("finish_reason")) or self.finish_raw
        before = len(events)
        self._add_reasoning(delta, events)
        self._add_content(delta.get("content"), events)
        return self._add_rest(delta) or len(events) > before

    def _add_reasoning(self, delta: Wire, events: list[Event]) -> None:
        details = [obj(item) for item in items(delta.get("reasoning_details"))]
        for detail in details:
            self._add_detail(detail)
        named = text(delta.get("reasoning_content")), text(delta.get("reasoning"))
        if any(named):
            self.think(*named, events)
        else:
            self._think(details_text(list[Json](details)), events)

    def _add_detail(self, detail: Wire) -> None:
        """Pieces of one detail follow each other under one type and index."""
        last = self._details[-1] if self._details else {}
        same = all(last.get(key) == detail.get(key) for key in ("type", "index"))
        if not same or not ("text" in detail or "summary" in detail or "signature" in detail):
            self._details.append(dict(detail))
            return
        for key, value in detail.items():
            grows = key in ("text", "summary") and isinstance(value, str)
            last[key] = text(last.get(key)) + text(value) if grows else value

    def _add_content(self, content: Json, events: list[Event]) -> None:
        for part in read_content(content) if content else ():
            match part:
                case Text(text=said):
                    if said:
                        self.text.append(said)
                        events.append(TextDelta(said))
                case Reasoning(text=said):
                    self._among_parts = True
                    self._think(said, events)
                case _:
                    self._parts.append(part)

    def _add_rest(self, delta: Wire) -> bool:
        calls, refusal = items(delta.get("tool_calls")), text(delta.get("refusal"))
        legacy, audio = obj(delta.get("function_call")), obj(delta.get("audio"))
        pictures = read_pictures(delta)
        self._calls.add(calls)
        self._refusal.append(refusal)
        self._parts += pictures
        if any(legacy.values()) and not calls:  # Snowflake sends its zero values, some send both
            self._calls.add_legacy(legacy)
        if any(audio.values()):
            self._add_audio(audio)
        return any((calls, refusal, pictures, *legacy.values(), *audio.values()))

    def _add_audio(self, audio: Wire) -> None:
        self._sound.append(read_base64(text(audio.get("data"))) or b"")
        for key, value in audio.items():
            if key == "transcript":
                value = text(self._audio.get(key)) + text(value)
            if key != "data":
                self._audio[key] = value

    def response(self) -> Response:
        """The answer; if there are other choices, with all of them as a plain one has them."""
        answer = self._made()
        if not self._others:
            return answer
        others = {index: other._made() for index, other in sorted(self._others.items())}
        choices = [_choice(index, said) for index, said in {0: answer, **others}.items()]
        return replace(answer, extra={**answer.extra, "choices": choices})

    def _made(self) -> Response:
        raw = self.finish_raw
        return Response(
            parts=tuple(self._all_parts()),
            finish_reason=FINISH.get(raw, "other"),
            usage=self._usage,
            model=self.model,
            refusal="".join(self._refusal),
            id=self._id,
            finish_raw=raw,
            issuer=ISSUER,
            extra=self._all_extra(),
        )

    def _all_parts(self) -> list[Part]:
        parts: list[Part] = []
        thought = "".join(self._thoughts)
        if thought or self._details:
            parts.append(Reasoning(thought, ISSUER, extra=self._spelling(thought)))
        if any(self.text):
            parts.append(Text("".join(self.text)))
        parts += self._parts
        sound = b"".join(self._sound)
        if sound or text(self._audio.get("id")):
            parts.append(File(sound, extra={"audio": dict(self._audio)}))
        return [*parts, *self._calls.finished(self._id)]

    def _spelling(self, thought: str) -> Extra:
        """How the vendor would want its reasoning back; empty when as we write it."""
        if self._among_parts:
            return {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
        spelled: Wire = {name: "".join(said) for name, said in self._named.items()}
        if self._details:
            spelled["reasoning_details"] = list[Json](self._details)
        return NO_EXTRA if spelled == {"reasoning_content": thought} else spelled

    def _all_extra(self) -> Extra:
        extra = dict(self._extra)
        if extra.get("created") == 0:
            del extra["created"]
        return extra or NO_EXTRA


def _choice(index: int, said: Response) -> Json:
    message = write_message(said)
    return {"index": index, "message": message, "finish_reason": finish_word(said)}
