"""How vendors of this API want it spoken, a row for each of their quirks.

Only what a vendor is known to refuse or to call otherwise is changed: a field of a vendor's own
goes to it as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from understudy.dialects.json_access import Wire, items, obj, text
from understudy.dialects.openai_chat.parts import REASONING
from understudy.dialects.tool_ids import nine_letter_id
from understudy.messages.parts import Json

Change = Callable[[Wire], Wire]


def _as_it_is(wire: Wire) -> Wire:
    return wire


@dataclass(frozen=True, slots=True)
class Accent:
    """What becomes of a request and of each of its turns."""

    marks: tuple[bytes, ...] = ()  # what a client's own bytes must not hold, to go as they came
    body: Change = _as_it_is
    turn: Change = _as_it_is


def _renamed(ours: str, theirs: str) -> Accent:
    def change(body: Wire) -> Wire:
        return {theirs if name == ours else name: value for name, value in body.items()}

    return Accent(body=change)


def _refusing(
    fields: Collection[str], in_turns: Collection[str] = (), spelled_else: Collection[str] = ()
) -> Accent:
    """Of the fields that are renamed for it as well, only the marks are told here."""
    looked_for = sorted({*fields, *in_turns, *spelled_else} - {"name"})  # tools have names, too
    refused, refused_in_turns = frozenset(fields), frozenset(in_turns)

    def change(body: Wire) -> Wire:
        return {name: value for name, value in body.items() if name not in refused}

    def change_turn(turn: Wire) -> Wire:
        """Only results of tools may have a name."""
        spared = {"name"} if turn.get("role") == "tool" else set()
        return {n: value for n, value in turn.items() if n not in refused_in_turns - spared}

    marks = tuple(b'"%b":' % name.encode() for name in looked_for)
    return Accent(marks, change, change_turn if in_turns else _as_it_is)


def _by_the_system(turn: Wire) -> Wire:
    return {**turn, "role": "system"} if turn.get("role") == "developer" else turn


def _flat(turn: Wire) -> Wire:
    parts = [obj(part) for part in items(turn.get("content"))]
    if not parts or any(part.get("type") != "text" for part in parts):
        return turn
    return {**turn, "content": "\n\n".join(text(part.get("text")) for part in parts)}


def _shortened(turn: Wire) -> Wire:
    turn = dict(turn)
    if "tool_call_id" in turn:
        turn["tool_call_id"] = nine_letter_id(text(turn["tool_call_id"]))
    if "tool_calls" in turn:
        calls: list[Json] = [_short(obj(call)) for call in items(turn["tool_calls"])]
        turn["tool_calls"] = calls
    return turn


def _short(call: Wire) -> Wire:
    return {**call, "id": nine_letter_id(text(call.get("id")))}


_OPENAI_ONLY = (
    "audio",
    "modalities",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "verbosity",
    "web_search_options",
)
_OLD_CALLS = ("function_call", "functions")
_LIKELIHOODS = ("logit_bias", "logprobs", "top_logprobs")
_TOLD = ("annotations", "audio", "refusal")  # of an answer, and sent back with a history
_THOUGHT = ("reasoning_content", "reasoning_details")

ACCENTS = {
    "max_tokens": _renamed("max_completion_tokens", "max_tokens"),
    "random_seed": _renamed("seed", "random_seed"),
    # It refuses, or drops, what a `developer` says; most but OpenAI do.
    "system_only": Accent((b'"developer"',), turn=_by_the_system),
    # It refuses text as a list of parts: DeepSeek, older vLLM.
    "flat_text": Accent((b'"content":[', b'"content": ['), turn=_flat),
    "nine_letter_ids": Accent((b'"tool_call',), turn=_shortened),
    # JSON of any shape has to be asked for by a schema; a schema has to be said in words as well
    # (contract M5). Both are done before anything is written.
    "schema_only": Accent((b'"json_object"',)),
    "schema_stated": Accent((b'"json_schema"',)),
    "refuses_as_cerebras": _refusing(_OPENAI_ONLY, (*_THOUGHT, *_TOLD)),
    "refuses_as_groq": _refusing((*_OPENAI_ONLY, *_LIKELIHOODS), ("name", *_THOUGHT, *_TOLD)),
    "refuses_as_mistral": _refusing(
        (*_OPENAI_ONLY, *_OLD_CALLS, *_LIKELIHOODS, "service_tier", "stream_options", "user"),
        ("name", "function_call", *_TOLD, *REASONING),
        spelled_else=("max_completion_tokens", "seed"),
    ),
    "refuses_as_nvidia": _refusing(_OPENAI_ONLY),
    "refuses_as_xai": _refusing(("frequency_penalty", "presence_penalty")),  # Grok 4 and later
}
