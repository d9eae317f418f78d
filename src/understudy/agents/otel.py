"""Spans for OpenTelemetry. Needs `opentelemetry-api`, and only when a sink is built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.agents.spans import Span

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

NANOS = 1_000_000_000


class OpenTelemetrySink:
    """Gives every route to a tracer, by default that of the program."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            hint = "pip install opentelemetry-api"
            raise ImportError(f"OpenTelemetrySink needs opentelemetry; {hint}") from error
        self._tracer = trace.get_tracer("understudy.agents") if tracer is None else tracer
        self._failed = trace.StatusCode.ERROR

    def __call__(self, span: Span) -> None:
        end = int(span.timestamp * NANOS)
        attributes: dict[str, str | int | list[str]] = {
            "understudy.agent": span.agent,
            "understudy.intent": span.intent,
            "understudy.strategy": span.strategy,
            "understudy.attempts": span.attempts,
            "understudy.path": list(span.path),
            "understudy.trace_id": span.trace_id,
        }
        if span.requested_strategy is not None:
            attributes["understudy.requested_strategy"] = span.requested_strategy
        started = end - int(span.latency_ms * 1e6)
        told = self._tracer.start_span(
            f"route {span.intent}", attributes=attributes, start_time=started
        )
        if span.error is not None:
            told.set_status(self._failed, span.error)
        told.end(end_time=end)
