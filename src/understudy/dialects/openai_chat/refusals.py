"""What OpenAI's clients send and vendors of the same API answer with an error, one row each.

These vendors refuse every field they do not know. Only what is known to be refused is left out:
a field of a vendor's own goes to it as it came.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from understudy.dialects.json_access import Wire, items, obj
from understudy.dialects.openai_chat.parts import REASONING

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


@dataclass(frozen=True, slots=True)
class Refusals:
    """Names of fields: of a request, of its turns, and those that the vendor spells otherwise."""

    fields: frozenset[str]
    in_turns: frozenset[str]
    marks: tuple[bytes, ...]

    def met_in(self, body: bytes) -> bool:
        """Would these bytes be refused? The name of a turn is not looked for: tools have names."""
        return any(body.find(mark) >= 0 for mark in self.marks)

    def left_out(self, body: Wire) -> Wire:
        kept = {name: value for name, value in body.items() if name not in self.fields}
        kept["messages"] = [self._turn(obj(turn)) for turn in items(body["messages"])]
        return kept

    def _turn(self, turn: Wire) -> Wire:
        """Only results of tools may have a name."""
        unknown = self.in_turns - ({"name"} if turn.get("role") == "tool" else set())
        return {name: value for name, value in turn.items() if name not in unknown}


def _row(
    fields: Collection[str], in_turns: Collection[str], spelled_else: Collection[str] = ()
) -> Refusals:
    looked_for = sorted({*fields, *in_turns, *spelled_else} - {"name"})
    marks = tuple(b'"%b":' % name.encode() for name in looked_for)
    return Refusals(frozenset(fields), frozenset(in_turns), marks)


REFUSALS = {
    "mistral": _row(
        (*_OPENAI_ONLY, *_OLD_CALLS, *_LIKELIHOODS, "service_tier", "stream_options", "user"),
        ("name", "function_call", *_TOLD, *REASONING),
        spelled_else=("max_completion_tokens", "seed"),
    ),
    "groq": _row(
        (*_OPENAI_ONLY, *_LIKELIHOODS),
        ("name", "reasoning_content", "reasoning_details", *_TOLD),
    ),
    "cerebras": _row(_OPENAI_ONLY, ("reasoning_content", "reasoning_details", *_TOLD)),
    "nvidia": _row(_OPENAI_ONLY, ()),
    "xai": _row(("frequency_penalty", "presence_penalty"), ()),  # Grok 4 and later
}
