"""Every named fault, shown to a real gateway by a real socket, and to the library by a fake."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

import pytest

from tests.rig import run
from tests.served import BASES, house, listening, provider
from understudy import AVAILABILITY, FAIL_FAST, ChainExhausted, Policy, ProviderError, Registry
from understudy.core.target import Attempt
from understudy.messages.response import TextDelta
from understudy.observe.record import Opening, Record
from understudy.providers.base import Patience
from understudy.providers.http import Settings
from understudy.providers.pool import Pool
from understudy.providers.transport import Limits, Origin, Outgoing, render_head
from understudy.rehearse.catalogue import CATALOGUE, ROWS
from understudy.rehearse.named import Named
from understudy.rehearse.phrases import voice
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer
from understudy.rehearse.wire import HANG, Drip
from understudy.testing import Fake, ManualClock

QUICK = Settings(
    patience=Patience(first_byte=0.25, idle=0.25, response=0.25),
    limits=Limits(connect=2.0, max_reply=1 << 20),
)
# Unpacking or sending a whole limit's worth takes longer than a stall should.
PATIENT = Settings(
    patience=Patience(first_byte=10, idle=10, response=10), limits=Limits(max_reply=1 << 20)
)
END_MARKS = {
    "openai": b"data: [DONE]",
    "responses": b"response.completed",
    "anthropic": b"message_stop",
    "gemini": b'"finishReason"',
    "ollama": b'"done":true',
}
DIALECTS = ("openai", "anthropic", "gemini", "responses", "ollama")
PATHS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/chat:{verb}",
    "ollama": "/api/chat",
}
BODY: dict[str, dict[str, object]] = {
    "openai": {"messages": [{"role": "user", "content": "hi"}]},
    "responses": {"input": "hi"},
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    "ollama": {"messages": [{"role": "user", "content": "hi"}]},
}
SHOWN = [row for row in ROWS if row.plain or row.stream]
BACKUP = "the backup speaks"


class Keeping:
    """Remembers the records."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None: ...

    def finished(self, record: Record) -> None:
        self.records.append(record)


@dataclass(frozen=True)
class Seen:
    """What came of one request."""

    status: int
    body: bytes
    record: Record
    calls: int  # of the faulty target
    backups: int


def takes_time(row: Named) -> bool:
    """What has to be waited for; not for long."""
    steps = (*(row.plain or ()), *(row.stream or ()))
    return any(step == HANG or isinstance(step, Drip) for step in steps)


async def shown(row: Named, dialect: str, *, stream: bool, policy: Policy) -> Seen:
    """Ask a gateway in front of the faulty target and a healthy backup."""
    keeping = Keeping()
    settings = QUICK if takes_time(row) else PATIENT
    async with FakeServer(parse(f"fine: {BACKUP!r} ...")) as server:
        head = provider(dialect, server.address, "head", settings)
        tail = provider(dialect, server.address, "tail", settings)
        served = house(head, tail, policy=policy, chat=f"head/{row.name}, tail/fine")
        async with listening(served, keeping) as gateway:
            status, body = await asked(gateway, dialect, stream=stream)
        await head.aclose()
        await tail.aclose()
    calls = sum(played.model == row.name for played in server.played)
    return Seen(status, body, keeping.records[0], calls, len(server.played) - calls)


async def asked(address: str, dialect: str, *, stream: bool) -> tuple[int, bytes]:
    origin = Origin.from_url(address)
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = PATHS[dialect].format(verb=verb)
    body = dict(BODY[dialect]) if dialect == "gemini" else {"model": "chat", **BODY[dialect]}
    if dialect != "gemini":
        body["stream"] = stream
    head = render_head("POST", origin, path, {"content-type": "application/json"})
    pool = Pool()
    answer = await pool.send(Outgoing(origin, head, json.dumps(body).encode()), Limits())
    data = await asyncio.wait_for(answer.read(), 20)
    await pool.aclose()
    return answer.status, data


def told_rightly(row: Named, seen: Seen, policy: Policy) -> None:
    first = seen.record.attempts[0]
    then = row.then[policy is AVAILABILITY]
    assert (first.fault, first.then) == (row.fault, then)
    assert first.retry_after == row.after
    assert seen.calls == (2 if then == "retry" else 1)


def answered_rightly(row: Named, seen: Seen, dialect: str, *, stream: bool) -> None:
    if row.fault is None:
        assert (seen.status, seen.backups, seen.record.outcome) == (200, 0, "ok")
    elif row.late:
        assert (seen.status, seen.backups, seen.record.outcome) == (200, 0, "broken")
        assert b"error" in seen.body
        assert END_MARKS[dialect] not in seen.body
    elif seen.record.attempts[-1].then == "stop":
        assert seen.status >= 400
        assert (seen.backups, seen.record.outcome) == (0, "failed")
    else:
        said = voice(dialect, "fine", BACKUP)
        whole = b"".join(said.stream()) if stream else said.phrases()["answer"]
        assert (seen.status, seen.body) == (200, whole)
        assert (seen.backups, seen.record.outcome) == (1, "ok")


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.name)
def test_the_gateway_does_what_the_catalogue_says(row: Named) -> None:
    """In every dialect that can show the fault, plain and streaming."""

    async def scene(dialect: str, stream: bool) -> None:
        seen = await shown(row, dialect, stream=stream, policy=AVAILABILITY)
        try:
            told_rightly(row, seen, AVAILABILITY)
            answered_rightly(row, seen, dialect, stream=stream)
        except AssertionError as error:
            error.add_note(f"in {dialect}, {'stream' if stream else 'plain'}")
            raise

    async def scenes() -> None:
        wanted = [
            (dialect, stream)
            for dialect in DIALECTS
            for stream in (False, True)
            if dialect in row.dialects and row.steps(stream=stream)
        ]
        await asyncio.gather(*(scene(dialect, stream) for dialect, stream in wanted))

    run(scenes())


@pytest.mark.parametrize("row", [r for r in SHOWN if r.then[0] != r.then[1]], ids=lambda r: r.name)
def test_the_cautious_policy_differs_only_where_the_catalogue_says_so(row: Named) -> None:
    seen = run(shown(row, "openai", stream=False, policy=FAIL_FAST))
    told_rightly(row, seen, FAIL_FAST)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("policy", [FAIL_FAST, AVAILABILITY], ids=lambda p: p.name)
@pytest.mark.parametrize("row", [r for r in ROWS if r.outcome], ids=lambda row: row.name)
def test_a_fake_shows_the_same_fault_without_a_network(
    row: Named, policy: Policy, stream: bool
) -> None:
    if not row.steps(stream=stream) and (row.plain or row.stream):
        return
    clock, story = ManualClock(), list[Attempt]()
    assert row.outcome is not None
    fake = Fake("p", clock=clock).script("a", row.outcome(), row.outcome())
    registry = Registry(env={}, policy=policy, clock=clock, observer=story.append)
    registry.register_provider(fake)
    heard = run(listened(registry, stream=stream))
    assert (story[0].fault, story[0].then) == (row.fault, row.then[policy is AVAILABILITY])
    assert story[0].retry_after == row.after
    if row.late:
        assert heard == "half"


async def listened(registry: Registry, *, stream: bool) -> str:
    model = registry.parse("p/a, p/b")
    heard = ""
    try:
        if not stream:
            return (await model.generate("hi")).text
        async with model.stream("hi") as events:
            async for event in events:
                heard += event.text if isinstance(event, TextDelta) else ""
    except (ProviderError, ChainExhausted):
        pass
    return heard


def test_every_row_has_a_name_of_its_own_and_can_be_shown() -> None:
    assert len(CATALOGUE) == len(ROWS)
    assert all(row.plain or row.stream or row.outcome for row in ROWS)
    assert all(row.means for row in ROWS)


def test_every_dialect_has_a_base_and_a_path() -> None:
    assert set(DIALECTS) == set(BASES) == set(PATHS) == set(END_MARKS)
