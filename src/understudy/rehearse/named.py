"""A fault with a name: what it looks like, and what must come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from understudy.core.faults import Fault
from understudy.providers.fake import Http, Outcome
from understudy.rehearse.wire import Reply, Steps

# What follows the first failure under (fail_fast, availability), one retry allowed.
Then = tuple[str, str]
BLIP: Then = ("retry", "retry")
ON: Then = ("advance", "advance")
LOUD: Then = ("stop", "advance")
PACE: Then = ("retry", "advance")  # a rate limit that names no delay
OVER: Then = ("stop", "stop")
FINE: Then = ("", "")

ANY = frozenset(("openai", "responses", "anthropic", "gemini", "ollama"))
EVENTS = ANY - {"ollama"}  # those that stream server-sent events


@dataclass(frozen=True, slots=True)
class Named:
    """One row of the catalogue. `fault` is None for what looks odd and is an answer."""

    name: str
    means: str
    fault: Fault | None
    then: Then
    plain: Steps | None = None  # None: plain answers cannot show it
    stream: Steps | None = None
    outcome: Callable[[], Outcome] | None = None  # for a `Fake`; None: only bytes can show it
    after: float | None = None  # seconds it says to wait
    late: bool = False  # happens after the first content
    dialects: frozenset[str] = ANY

    @property
    def seen(self) -> bool:
        """Can a server show it at all?"""
        return self.plain is not None or self.stream is not None

    def steps(self, *, stream: bool) -> Steps | None:
        return self.stream if stream else self.plain


def status(  # noqa: PLR0913 - a row is read across
    name: str,
    number: int,
    body: str,
    fault: Fault,
    then: Then,
    *headers: tuple[str, str],
    after: float | None = None,
    means: str = "",
) -> Named:
    """A refusal by status: the same bytes whether a stream was asked for or not."""
    kind = "text/html" if body.startswith("<") else "application/json"
    steps: Steps = (Reply(number, body.encode(), kind, headers),)
    return Named(
        name,
        means or f"status {number}",
        fault,
        then,
        steps,
        steps,
        lambda: Http(number, body, dict(headers)),
        after,
    )
