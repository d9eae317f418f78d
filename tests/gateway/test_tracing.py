"""Spans by the GenAI conventions: one a request, one an attempt below it, no words in them."""

from __future__ import annotations

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Upstream,
    aliases,
    always,
    answer,
    fronted,
    provider,
    says,
    serving,
)
from tests.rig import run
from understudy.gateway.config import InvalidConfig
from understudy.gateway.runtime import Runtime
from understudy.observe.tracing import Tracing

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
names = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
Span = SimpleNamespace  # what is read of a span; the SDK may be missing


class Told:
    """An SDK that keeps its spans in memory, wired to a gateway as `tracing = true` would."""

    def __init__(self) -> None:
        self._kept = memory.InMemorySpanExporter()
        self._provider = sdk.TracerProvider()
        self._provider.add_span_processor(export.SimpleSpanProcessor(self._kept))

    def watch(self, runtime: Runtime) -> None:
        gateway = runtime.gateway
        tracer = self._provider.get_tracer("understudy")
        self.tracing = Tracing(tracer, lambda: gateway.house.registry)
        gateway.told_to(*gateway.readers, self.tracing)
        gateway.traced = True

    @property
    def spans(self) -> tuple[Span, list[Span]]:
        """The request's, and the attempts' in order."""
        *attempts, request = self._kept.get_finished_spans()
        return request, attempts


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_request_is_a_span_and_each_attempt_one_below_it(told: Told) -> None:
    async def work() -> tuple[int, int]:
        async with Upstream(lambda _: says(503)) as down, Upstream(always()) as up:
            text = (
                provider("down", down.url)
                + provider("gem", up.url)
                + 'vendor = "google"\n'
                + aliases(chat="down/a, gem/b")
            )
            async with serving(text) as served:
                told.watch(served.runtime)
                parent = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
                body = {**HELLO, "model": "chat"}
                await served.ask("POST", "/v1/chat/completions", body, parent)
            return int(down.url.rpartition(":")[2]), int(up.url.rpartition(":")[2])

    ports = run(work())
    request, attempts = told.spans
    assert (request.name, request.kind.name) == ("chat chat", "SERVER")
    assert f"{request.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == CALLER
    assert dict(request.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "chat",
        "gen_ai.request.stream": False,
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.response.model": "b",
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
        "http.response.status_code": 200,
        "understudy.request_id": request.attributes["understudy.request_id"],
        "understudy.surface": "openai",
        "understudy.outcome": "ok",
        "understudy.attempts": 3,
        "understudy.target": "gem/b",
    }
    assert request.status.status_code.name == "UNSET"
    seen = [
        (a.name, a.kind.name, a.attributes.get("error.type"), a.attributes["server.port"])
        for a in attempts
    ]
    assert seen == [
        ("chat a", "CLIENT", "transient", ports[0]),
        ("chat a", "CLIENT", "transient", ports[0]),
        ("chat b", "CLIENT", None, ports[1]),
    ]
    assert all(a.parent.span_id == request.context.span_id for a in attempts)
    assert all(request.start_time <= a.start_time <= a.end_time for a in attempts)
    assert [a.attributes["understudy.attempt"] for a in attempts] == [1, 2, 3]
    assert attempts[0].attributes["http.response.status_code"] == 503
    assert attempts[0].status.status_code.name == "ERROR"
    assert attempts[2].attributes["gen_ai.response.model"] == "b"
    assert attempts[2].attributes["server.address"] == "127.0.0.1"


def test_every_genai_attribute_is_one_of_the_conventions(told: Told) -> None:
    async def work() -> None:
        async with fronted(always(HELLO_STREAM)) as (served, _):
            told.watch(served.runtime)
            body = {**HELLO, "model": "chat", "stream": True}
            await served.ask("POST", "/v1/chat/completions", body)

    run(work())
    request, [attempt] = told.spans
    known = {value for value in vars(names).values() if isinstance(value, str)}
    used = {name for span in (request, attempt) for name in span.attributes}
    assert {name for name in used if name.startswith("gen_ai.")} <= known
    assert attempt.attributes["gen_ai.response.time_to_first_chunk"] >= 0
    assert attempt.attributes["gen_ai.request.stream"] is True


@pytest.mark.parametrize(
    ("path", "body", "operation"),
    [
        ("/v1/embeddings", {"model": "chat", "input": "planted words"}, "embeddings"),
        (
            "/v1beta/models/chat:generateContent",
            {"contents": [{"role": "user", "parts": [{"text": "planted words"}]}]},
            "generate_content",
        ),
        ("/v1/messages", {**HELLO, "model": "chat", "max_tokens": 1}, "chat"),
    ],
)
def test_the_operation_is_named_and_no_word_of_the_conversation(
    told: Told, path: str, body: object, operation: str
) -> None:
    async def work() -> None:
        async with fronted(always(answer("planted words"))) as (served, _):
            told.watch(served.runtime)
            await served.ask("POST", path, body)

    run(work())
    request, attempts = told.spans
    assert request.attributes["gen_ai.operation.name"] == operation
    assert "planted" not in "".join(span.to_json() for span in (request, *attempts))


def test_a_request_nobody_was_asked_for_has_its_status_as_error(told: Told) -> None:
    async def work() -> None:
        async with serving(aliases(chat="openai/m")) as served:
            told.watch(served.runtime)
            await served.chat("nobody")

    run(work())
    request, attempts = told.spans
    assert attempts == []
    assert request.attributes["error.type"] == "400"
    assert request.status.status_code.name == "ERROR"


def test_a_skipped_target_is_an_event_not_a_span(told: Told) -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("p", up.url) + provider("q", up.url) + aliases(chat="p/m, q/m")
            async with serving(text) as served:
                served.runtime.gateway.house.registry.health.bench("p/m", 60, "being mended")
                told.watch(served.runtime)
                await served.chat()

    run(work())
    request, attempts = told.spans
    [event] = request.events
    assert (event.name, event.attributes["understudy.target"]) == ("skipped", "p/m")
    assert "being mended" in event.attributes["reason"]
    assert [a.attributes["understudy.target"] for a in attempts] == ["q/m"]


def test_requests_with_the_same_id_do_not_share_attempts(told: Told) -> None:
    async def work() -> None:
        async with fronted(always()) as (served, _):
            told.watch(served.runtime)
            for _ in range(2):
                await served.chat(x_request_id="same")

    run(work())
    kinds = [span.kind.name for span in told._kept.get_finished_spans()]
    assert kinds == ["CLIENT", "SERVER", "CLIENT", "SERVER"]


def test_tracing_that_cannot_be_had_is_a_problem_of_the_configuration() -> None:
    async def work() -> None:
        with pytest.raises(InvalidConfig, match=r"gateway\.tracing: tracing needs opentelemetry"):
            async with serving("[gateway]\ntracing = true\n"):
                pass

    if find_spec("opentelemetry.exporter"):
        pytest.skip("an exporter is installed")
    run(work())
