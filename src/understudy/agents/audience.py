"""Who hears how a route went: the sinks get its span, the recorder its record.

Whatever one of them raises changes nothing; it is kept among the mishaps for those who look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from understudy.agents.middleware import Mishap
from understudy.agents.record import KeepRecord, Record
from understudy.agents.response import AgentResponse
from understudy.agents.route import Route
from understudy.agents.spans import Sink, Span


class Audience:
    """The sinks and the recorder of one router."""

    def __init__(
        self, sinks: Sequence[Sink], recorder: KeepRecord | None, mishaps: deque[Mishap]
    ) -> None:
        self._sinks = tuple(sinks)
        self._recorder = recorder
        self._mishaps = mishaps

    def told(
        self, route: Route, agent: str, error: str | None, response: AgentResponse | None
    ) -> None:
        """`agent` had the last word; `response` is None when the route was cancelled."""
        if self._sinks:
            span = _span(route, agent, error)
            for sink in self._sinks:
                try:
                    sink(span)
                except Exception as mishap:  # noqa: BLE001 - whoever watches changes nothing
                    self._mishaps.append(Mishap("sink", mishap))
        if self._recorder is not None:
            try:
                self._recorder(_record(route, response))
            except Exception as mishap:  # noqa: BLE001 - as above
                self._mishaps.append(Mishap("recorder", mishap))


def _span(route: Route, agent: str, error: str | None) -> Span:
    envelope, path = route.envelope, tuple(route.tried)
    return Span(
        agent,
        envelope.intent.name,
        "ok" if error is None else "error",
        (route.clock() - route.began) * 1e3,
        error,
        envelope.metadata.trace_id,
        route.strategy,
        len(path),
        path,
        route.unknown,
        route.ended,
    )


def _record(route: Route, response: AgentResponse | None) -> Record:
    # The caller may edit what it gets, so the record keeps a copy.
    kept = None if response is None else response.copy()
    events = tuple(route.log)
    return Record(route.envelope, route.lineup.ranks, events, kept, route.strict)
