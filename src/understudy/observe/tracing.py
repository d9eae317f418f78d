"""OpenTelemetry spans by the GenAI conventions: one a request, below it one an attempt.

Spans are made when a request has ended, from its record, so an untraced gateway pays nothing and
a traced one nothing while it streams. No prompt, no answer and no key is in them. The SDK is
imported here and nowhere else, and only if tracing is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from understudy.core.target import Attempt
from understudy.messages.response import Usage
from understudy.observe.record import Opening, Record
from understudy.providers.http import HttpProvider, vendor_of
from understudy.providers.transport import PORTS
from understudy.registry import Registry

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer, TracerProvider

Attributes = dict[str, str | int | float | bool]
NANOS = 1_000_000_000

OPERATIONS = {
    "gemini": "generate_content",
    "embeddings": "embeddings",
    "count_tokens": "count_tokens",
}
# Our vendors by the names of the conventions, where those differ; others go by their own.
PROVIDERS = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "azure": "azure.ai.openai",
    "xai": "x_ai",
    "mistral": "mistral_ai",
}


class NoTracing(Exception):
    """Tracing is asked for and cannot be had; says what to install."""


class Tracing:
    """A reader that turns records into spans."""

    def __init__(self, tracer: Tracer, registry: Callable[[], Registry]) -> None:
        self._trace = import_module("opentelemetry.trace")
        self._tracer = tracer
        self._registry = registry

    def finished(self, record: Record) -> None:
        opening, span, number = record.opening, self._request(record), 0
        for attempt in record.attempts:
            began = opening.at + attempt.began - opening.began  # epoch seconds
            if attempt.outcome == "skipped":
                told: Attributes = {"understudy.target": attempt.target, "reason": attempt.reason}
                span.add_event("skipped", told, timestamp=_nanos(began))
                continue
            number += 1
            self._attempt(span, record, attempt, (number, began))
        span.end(_nanos(opening.at + record.seconds))

    def _request(self, record: Record) -> Span:
        opening = record.opening
        provider, _, model = record.target.partition("/")
        attributes: Attributes = {
            **_named(opening, opening.model),
            "http.response.status_code": record.status,
            "understudy.request_id": opening.id,
            "understudy.surface": opening.surface,
            "understudy.outcome": record.outcome,
            "understudy.attempts": len(record.attempts),
        }
        if record.target:
            attributes["gen_ai.provider.name"] = self._provider(provider)
            attributes["gen_ai.response.model"] = model
            attributes["understudy.target"] = record.target
        attributes |= _usage(record.usage)
        return self._span(
            attributes,
            _parent(opening.trace),
            opening.at,
            "" if record.outcome in ("ok", "left") else _error(record),
        )

    def _attempt(
        self, parent: Span, record: Record, attempt: Attempt, when: tuple[int, float]
    ) -> None:
        number, began = when
        provider, _, model = attempt.target.partition("/")
        attributes: Attributes = {
            **_named(record.opening, model),
            "gen_ai.provider.name": self._provider(provider),
            **self._server(provider),
            "understudy.attempt": number,
            "understudy.target": attempt.target,
            "understudy.credential": attempt.credential,
        }
        if attempt.status is not None:
            attributes["http.response.status_code"] = attempt.status
        if attempt.first_content is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = attempt.first_content
        if attempt.then:
            attributes["understudy.then"] = attempt.then
        if attempt.outcome == "ok":
            attributes |= {"gen_ai.response.model": model, **_usage(record.usage)}
        below: Context = self._trace.set_span_in_context(parent)
        error = str(attempt.fault) if attempt.outcome == "failed" else ""
        span = self._span(attributes, below, began, error, client=True)
        span.end(_nanos(began + attempt.seconds))

    def _span(
        self,
        attributes: Attributes,
        context: Context | None,
        start: float,
        error: str,
        *,
        client: bool = False,
    ) -> Span:
        kinds = self._trace.SpanKind
        if error:
            attributes["error.type"] = error
        span = self._tracer.start_span(
            f"{attributes['gen_ai.operation.name']} {attributes['gen_ai.request.model']}".strip(),
            context,
            kinds.CLIENT if client else kinds.SERVER,
            attributes,
            start_time=_nanos(start),
        )
        if error:
            span.set_status(self._trace.StatusCode.ERROR)
        return span

    def _provider(self, name: str) -> str:
        vendor = vendor_of(self._registry().providers.get(name), name)
        return PROVIDERS.get(vendor, vendor)

    def _server(self, name: str) -> Attributes:
        provider = self._registry().providers.get(name)
        if not isinstance(provider, HttpProvider):
            return {}
        parts = urlsplit(provider.base_url)
        port = parts.port or PORTS.get(parts.scheme, 0)
        return {"server.address": parts.hostname or "", "server.port": port}


def needed() -> None:
    """Raises NoTracing unless all that tracing takes is installed. Sets nothing up."""
    _sdk()
    _otlp()


def _sdk() -> ModuleType:
    try:
        return import_module("opentelemetry.sdk.trace")
    except ImportError:
        raise NoTracing(
            "tracing needs opentelemetry-sdk; install it, or set it to false"
        ) from None


def _otlp() -> ModuleType:
    try:
        return import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError:
        raise NoTracing("tracing needs opentelemetry-exporter-otlp-proto-http") from None


def tracer_provider() -> TracerProvider:
    """The process's own if it has one; else one that exports as the OTEL_* variables say."""
    sdk = _sdk()
    trace = import_module("opentelemetry.trace")
    current: TracerProvider = trace.get_tracer_provider()
    configured: bool = isinstance(current, sdk.TracerProvider)
    if configured:
        return current
    otlp = _otlp()
    export = import_module("opentelemetry.sdk.trace.export")
    exporting = sdk.TracerProvider()
    exporting.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    trace.set_tracer_provider(exporting)
    made: TracerProvider = exporting
    return made


def _named(opening: Opening, model: str) -> Attributes:
    return {
        "gen_ai.operation.name": OPERATIONS.get(opening.surface, "chat"),
        "gen_ai.request.model": model,
        "gen_ai.request.stream": opening.stream,
    }


def _usage(usage: Usage | None) -> Attributes:
    if usage is None:
        return {}
    told: Attributes = {
        "gen_ai.usage.input_tokens": usage.total_input,
        "gen_ai.usage.output_tokens": usage.total_output,
    }
    for name, count in (
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ):
        if count:
            told[name] = count
    return told


def _error(record: Record) -> str:
    """The last fault of the story, or the status where nobody was asked."""
    faults = [str(a.fault) for a in record.attempts if a.outcome == "failed"]
    return faults[-1] if faults else str(record.status)


def _parent(traceparent: str) -> Context | None:
    if not traceparent:
        return None
    module = import_module("opentelemetry.trace.propagation.tracecontext")
    carrier: Mapping[str, str] = {"traceparent": traceparent}
    found: Context = module.TraceContextTextMapPropagator().extract(carrier)
    return found


def _nanos(seconds: float) -> int:
    return int(seconds * NANOS)
