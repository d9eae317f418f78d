"""Who hears how a route went: the sinks get its span, the recorder its record.

Whatever one of them raises changes nothing; it is kept among the mishaps for those who look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec.structs import replace

from understudy.agents.middleware import Mishap, plain
from understudy.agents.payload import noted
from understudy.agents.record import Ended, KeepRecord, Record
from understudy.agents.response import AgentResponse
from understudy.agents.route import Outcome, Route
from understudy.agents.spans import Sink, Span


class Audience:
    """The sinks and the recorder of one router."""

    def __init__(
        self, sinks: Sequence[Sink], recorder: KeepRecord | None, mishaps: deque[Mishap]
    ) -> None:
        self._sinks = tuple(plain("sink", sink) for sink in sinks)
        self._recorder = None if recorder is None else plain("recorder", recorder)
        self._mishaps = mishaps

    def told(self, route: Route, outcome: Outcome, response: AgentResponse | None) -> None:
        """`response` is what the caller gets, None when the route was cancelled."""
        if self._sinks:
            span = _span(route, outcome)
            for sink in self._sinks:
                try:
                    sink(span)
                except Exception as mishap:  # noqa: BLE001 - whoever watches changes nothing
                    self._mishaps.append(Mishap("sink", mishap))
        if self._recorder is not None:
            try:
                self._recorder(_record(route, outcome, response))
            except Exception as mishap:  # noqa: BLE001 - as above
                self._mishaps.append(Mishap("recorder", mishap))


def _span(route: Route, outcome: Outcome) -> Span:
    envelope, error, path = route.envelope, outcome.response.error, tuple(route.tried)
    return Span(
        outcome.agent,
        envelope.intent.name,
        "ok" if error is None else "error",
        (route.clock() - route.began) * 1e3,
        None if error is None else error.message,
        envelope.metadata.trace_id,
        route.strategy,
        len(path),
        path,
        route.unknown,
        route.ended,
    )


def _record(route: Route, outcome: Outcome, response: AgentResponse | None) -> Record:
    """All of it copies: the caller may edit what it gets, and the recorder what it is given."""
    return Record(
        route.envelope.copy(),
        route.lineup.ranks,
        route.strategy,
        tuple(route.tried),
        tuple(_noted(end) for end in route.ends),
        outcome.agent,
        outcome.reason,
        None if response is None else response.copy(noted),
        route.strict,
    )


def _noted(end: Ended) -> Ended:
    return end if end.error is None else replace(end, error=end.error.copy(noted))
