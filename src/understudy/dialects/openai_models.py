"""What the generations of OpenAI's models refuse, as rows. Only for requests of another dialect.

A caller who speaks OpenAI's own dialect knows its model; one who spoke another must not fail
because of a parameter that is harmless elsewhere (a temperature, an effort). A model of anybody
else's is asked as it comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from understudy.dialects.longest import granted
from understudy.dialects.schemas import is_object
from understudy.messages.request import Message, Request
from understudy.messages.schema import state_schema
from understudy.messages.stops import Stops

_NAME = re.compile(r"(?:^|/)(o|gpt-)(\d)(?:\.(\d+))?o?(?=$|[-:@])(?!.*oss)")
_LEAST = 16  # tokens; its Responses API refuses a lower limit
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Habits:
    """How one generation wants to be asked."""

    sampling: bool  # takes temperature and top_p
    efforts: tuple[str, ...]  # of reasoning, least first; empty if it takes none
    stops: bool = True  # takes stop sequences
    parallel: bool = True  # may be told whether to call tools in parallel


_TALKS = Habits(True, ())
_MOST_STOPS = 4
# The newest row whose version is not above the model's.
_ROWS = (
    ((0, 0), _TALKS),
    ((5, 0), Habits(False, ("minimal", "low", "medium", "high"), stops=False)),
    ((5, 1), Habits(False, ("none", "low", "medium", "high"), stops=False)),
    ((5, 2), Habits(False, ("none", "low", "medium", "high", "xhigh"), stops=False)),
)
# o1, o3 and the like.
_THINKS = Habits(False, ("low", "medium", "high"), stops=False, parallel=False)


@lru_cache(512)
def habits_of(model: str) -> Habits | None:
    """The habits of a model by its name; None for one that is not OpenAI's."""
    found = _NAME.search(model)
    if found is None:
        return None
    if found[1] == "o":
        return _THINKS
    version = int(found[2]), int(found[3] or 0)
    habits = next(habits for since, habits in reversed(_ROWS) if since <= version)
    fixed = "-chat" in model or "-pro" in model  # these choose their effort themselves
    return replace(habits, efforts=()) if fixed else habits


def bent(request: Request, model: str) -> Request:
    """The request without what this model would refuse."""
    request = granted(request, model)
    habits = habits_of(model)
    if habits is None:
        return request
    schema = request.output.schema if request.output else None
    if schema is not None and not is_object(schema):
        request = state_schema(request)  # only objects have a form: a list is asked for in words
    if not habits.sampling and (request.temperature, request.top_p) != (None, None):
        request = replace(request, temperature=None, top_p=None)
    if request.reasoning and request.reasoning not in habits.efforts:
        request = replace(request, reasoning=_nearest(request.reasoning, habits.efforts))
    choice = request.tool_choice
    if choice and choice.parallel is not None and not habits.parallel:
        request = replace(request, tool_choice=replace(choice, parallel=None))
    return request


def unheard(request: Request, model: str) -> Stops:
    """Of the stops, those that this model would refuse; others' models are told as many."""
    habits = habits_of(model) or _TALKS
    return request.stop[_MOST_STOPS:] if habits.stops else request.stop


def afforded(request: Request, model: str) -> Request:
    """The request with as long an answer as the Responses API grants at least."""
    limit = request.max_tokens
    if limit is None or limit >= _LEAST or habits_of(model) is None:
        return request
    return replace(request, max_tokens=_LEAST)


def lacks_word(messages: Iterable[Message]) -> bool:
    """JSON without a schema is refused if nobody says the word."""
    return not any("json" in message.text.lower() for message in messages)


def _nearest(effort: str, efforts: tuple[str, ...]) -> str | None:
    """The least effort that is no less; the greatest if there is none."""
    rank = _EFFORTS.index(effort) if effort in _EFFORTS else len(_EFFORTS)
    enough = (known for known in efforts if _EFFORTS.index(known) >= rank)
    return next(enough, efforts[-1] if efforts else None)
