"""Hooks, sinks, spans and recorders: who is told what, and in which order."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from tests.agents.rig import House, fails, ok, raises, run, task
from understudy.agents import (
    AgentRegistry,
    AgentResponse,
    ErrorInfo,
    Instruments,
    IntentEnvelope,
    JsonLines,
    MemorySink,
    Middleware,
    OpenTelemetrySink,
    Recorder,
    Router,
    Routing,
    Span,
    read_record,
)
from understudy.testing import ManualClock


class Diary(Middleware):
    """Writes down what it is told, and tries to meddle with it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def before_route(self, envelope: IntentEnvelope) -> IntentEnvelope | None:
        self.told.append(f"before {envelope.intent.name}")
        _meddle(envelope.payload)
        return None

    def after_route(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        self.told.append(f"after {response.metadata['agent']} {response.status}")
        _meddle(envelope.payload)
        _meddle(response.payload)
        response.metadata.clear()

    def on_error(self, envelope: IntentEnvelope, error: ErrorInfo) -> None:
        self.told.append(f"error {error.message}")
        error.details["meddled"] = True


def _meddle(payload: object) -> None:
    if isinstance(payload, dict):
        payload["meddled"] = True


def watched(house: House, *middleware: object) -> Router:
    return Router(
        house.registry, sinks=[house.sink], recorder=house.recorder, middleware=middleware
    )


@pytest.mark.parametrize(
    ("house", "strategy", "told"),
    [
        (House(a=fails(), b=ok()), "fallback", ["before task", "after b success"]),
        (House(a=fails("x")), "fallback", ["before task", "after a error", "error x"]),
        (House(a=fails("x"), b=ok()), "direct", ["before task", "after a error", "error x"]),
        (House(), "fallback", ["before task", "error no agent can do task@1.0"]),
        (House(a=ok()), "parallel", ["before task", "error PARALLEL is refused"]),
    ],
)
def test_hooks_are_called_in_this_order(house: House, strategy: str, told: list[str]) -> None:
    diary = Diary()
    run(watched(house, diary).route(task(strategy)))
    assert [line[: len(want)] for line, want in zip(diary.told, told, strict=True)] == told


def test_what_a_hook_edits_reaches_nobody() -> None:
    seen: list[object] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(envelope.payload)
        return AgentResponse.success({"n": 2})

    house = House(a=fails(), b=notes)
    response = run(watched(house, Diary(), Diary()).route(task(payload={"n": 1})))
    assert (seen, response.payload) == ([{"n": 1}], {"n": 2})
    assert response.metadata["agent"] == "b"

    failed = run(watched(House(a=fails()), Diary()).route(task()))
    assert failed.error is not None
    assert failed.error.details == {}


def test_a_hook_may_exchange_the_envelope_and_the_next_sees_it() -> None:
    class Direct:
        """Any object with one of the three methods will do."""

        def before_route(self, envelope: IntentEnvelope) -> IntentEnvelope:
            return envelope.having(routing=Routing("direct", "b"), payload="exchanged")

    house = House(a=ok("a"), b=lambda envelope: AgentResponse.success(envelope.payload))
    response = run(watched(house, Direct()).route(task()))
    assert (response.payload, response.decision_path) == ("exchanged", ("b",))
    assert house.span.strategy == "direct"


def test_a_payload_that_no_hook_can_copy_is_a_mishap_and_nothing_else() -> None:
    house = House(a=ok(Lock()))
    router = watched(house, Diary())
    assert run(router.route(task())).ok
    assert [mishap.where for mishap in router.mishaps] == ["after_route"]


async def writes(told: object) -> None:
    raise AssertionError("nobody awaits it")


class Writer:
    async def __call__(self, told: object) -> None:
        await writes(told)

    async def on_error(self, envelope: IntentEnvelope, error: ErrorInfo) -> None:
        await writes(error)


@pytest.mark.parametrize(
    ("watchers", "what"),
    [
        ({"sinks": [writes]}, "sink"),
        ({"sinks": [Writer()]}, "sink"),
        ({"recorder": partial(writes)}, "recorder"),
        ({"middleware": [Writer()]}, "on_error"),
    ],
)
def test_a_watcher_that_would_have_to_be_awaited_is_refused(
    watchers: dict[str, Any], what: str
) -> None:
    with pytest.raises(TypeError, match=f"{what}: a plain function is needed"):
        Router(AgentRegistry(), **watchers)


def test_the_latency_is_that_of_all_attempts_together() -> None:
    clock = ManualClock(100.0)

    def slow(envelope: IntentEnvelope) -> AgentResponse:
        clock.advance(1.5)
        return AgentResponse.failure(ErrorInfo("AGENT_TIMEOUT", "slow"))  # type: ignore[arg-type]

    house = House(a=slow, b=slow)
    instruments = Instruments(clock=clock, wall=lambda: 5.0, new_id=lambda: "id")
    router = Router(
        house.registry, sinks=[house.sink], recorder=house.recorder, instruments=instruments
    )
    response = run(router.route(IntentEnvelope(intent=task().intent, routing=task().routing)))
    assert house.span.latency_ms == 3000.0
    assert [end.ms for end in house.record.ends] == [1500.0, 1500.0]
    assert (house.span.timestamp, response.metadata["timestamp"]) == (5.0, 5.0)
    assert (house.span.trace_id, response.metadata["trace_id"]) == ("id", "id")


def test_memory_is_bounded() -> None:
    sink, recorder = MemorySink(limit=3), Recorder(limit=2)
    router = Router(House(a=ok()).registry, sinks=[sink], recorder=recorder)
    for n in range(9):
        router.route_sync(task(trace_id=str(n)))
    assert [span.trace_id for span in sink.spans] == ["6", "7", "8"]
    assert [record.envelope.metadata.trace_id for record in recorder.records] == ["7", "8"]


def test_what_the_caller_does_to_a_response_is_not_in_the_record() -> None:
    house = House(a=ok({"n": 1}))
    response = house.route()
    assert isinstance(response.payload, dict)
    response.payload["n"] = 2
    response.metadata.clear()
    assert house.record.response.payload == {"n": 1}
    assert house.record.response.metadata["agent"] == "a"


def test_spans_and_records_are_lines_of_json(tmp_path: Path) -> None:
    house = House(a=fails("x"), b=ok("b"))
    spans, records = tmp_path / "spans.jsonl", tmp_path / "records.jsonl"
    with JsonLines(spans) as sink, JsonLines(records) as recorder:
        router = Router(house.registry, sinks=[sink, house.sink], recorder=recorder)
        router.route_sync(task(trace_id="1"))
        router.route_sync(task("fancy", trace_id="2"))
    told = [json.loads(line) for line in spans.read_text().splitlines()]
    assert [(line["trace_id"], line["agent"], line["path"]) for line in told] == [
        ("1", "b", ["a", "b"]),
        ("2", "b", ["a", "b"]),
    ]
    assert told[1]["requested_strategy"] == "fancy"
    kept = [read_record(line.encode()) for line in records.read_text().splitlines()]
    assert [record.envelope.metadata.trace_id for record in kept] == ["1", "2"]


def test_a_record_that_cannot_be_written_leaves_no_half_a_line(tmp_path: Path) -> None:
    house = House(a=ok({(1, 2): "JSON has no such keys"}))
    path = tmp_path / "records.jsonl"
    with JsonLines(path) as recorder:
        router = Router(house.registry, recorder=recorder)
        assert router.route_sync(task()).ok
    assert path.read_bytes() == b""
    assert [mishap.where for mishap in router.mishaps] == ["recorder"]


def test_an_agent_that_raises_an_intent_of_its_own_starts_a_route_of_its_own() -> None:
    registry, sink = AgentRegistry(), MemorySink()
    router = Router(registry, sinks=[sink])

    @registry.agent("boss", capabilities=["task"])
    async def boss(envelope: IntentEnvelope) -> AgentResponse:
        return await router.route(envelope.child("errand", 1, by="boss"))

    @registry.agent("clerk", capabilities=["errand"])
    def clerk(envelope: IntentEnvelope) -> AgentResponse:
        return AgentResponse.success(list(envelope.metadata.identity_chain))

    response = run(router.route(task(trace_id="t")))
    assert response.payload == ["boss"]
    assert [(span.intent, span.trace_id) for span in sink.spans] == [
        ("errand", "t"),
        ("task", "t"),
    ]
    assert sink.spans[0].agent == "clerk"


def test_agents_that_ask_each_other_in_a_circle_are_stopped() -> None:
    registry, sink = AgentRegistry(), MemorySink()
    router = Router(registry, sinks=[sink])

    @registry.agent("echo", capabilities=["task"])
    async def echo(envelope: IntentEnvelope) -> AgentResponse:
        return await router.route(envelope.child("task", None, by="echo"))

    response = run(router.route(task()))
    assert response.error is not None
    assert "circle" in response.error.message
    assert len(sink.spans) == 66


class Note:
    """A span of OpenTelemetry, as far as the sink needs one."""

    def __init__(self, told: dict[str, object]) -> None:
        self.told = told

    def set_status(self, code: object, text: str) -> None:
        self.told["status"] = (str(code), text)

    def end(self, end_time: int) -> None:
        self.told["end"] = end_time


class Tracer:
    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []

    def start_span(self, name: str, **fields: object) -> Note:
        self.told.append({"name": name, **fields})
        return Note(self.told[-1])


def test_opentelemetry_gets_the_route_as_one_span() -> None:
    pytest.importorskip("opentelemetry")
    tracer = Tracer()
    sink = OpenTelemetrySink(tracer)  # type: ignore[arg-type]
    sink(Span("b", "sum", "error", 1500.0, "no", "t", "fallback", 2, ("a", "b"), "fancy", 10.0))
    (told,) = tracer.told
    assert (told["name"], told["start_time"], told["end"]) == (
        "route sum",
        8_500_000_000,
        10_000_000_000,
    )
    assert told["status"] == ("StatusCode.ERROR", "no")
    assert told["attributes"] == {
        "understudy.agent": "b",
        "understudy.intent": "sum",
        "understudy.strategy": "fallback",
        "understudy.attempts": 2,
        "understudy.path": ["a", "b"],
        "understudy.trace_id": "t",
        "understudy.requested_strategy": "fancy",
    }


def test_opentelemetry_works_with_the_programs_own_tracer() -> None:
    pytest.importorskip("opentelemetry")
    house = House(a=raises(ValueError("x")), b=ok())
    router = Router(house.registry, sinks=[OpenTelemetrySink()])
    assert run(router.route(task())).ok
    assert router.mishaps == ()
