"""JSON log lines: `failover`, `failover_recovered`, `failover_abort`, and one per request.

A failed attempt that is followed by another is a `failover`; a request that ends in failure has
exactly one `failover_abort`, one that was saved exactly one `failover_recovered`. Fields as the
source of the taxonomy has them. Snippets are cut at 200 characters and were cleared of secrets
before they got here. Lines are gathered and written together.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from understudy.core.health import Change
from understudy.core.target import Attempt
from understudy.observe.pen import Write
from understudy.observe.record import Opening, Record

SNIPPET = 200
TOLD_MOST = 10_000  # benches whose end is told; clients may name models without end
TOGETHER = 1024 * 1024  # bytes that are written without waiting for more
Later = Callable[[Callable[[], None]], None]
ENCODER = msgspec.json.Encoder()


class LogLines:
    """Writes lines as attempts fail and requests end.

    `later` calls back when lines are to be written; without one they are written at once.
    """

    def __init__(
        self,
        write: Write,
        wall: Callable[[], float],
        *,
        access: bool = True,
        later: Later | None = None,
    ) -> None:
        self.access = access
        self._write = write
        self._wall = wall
        self._later = later
        self._lines = bytearray()  # encoded at once: objects that wait would let their memory cool
        self._benched: set[str] = set()  # keys whose bench was told, and not yet its end

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        if attempt.outcome != "failed":
            return
        provider, _, model = attempt.target.partition("/")
        next_provider, _, next_model = attempt.next.partition("/")
        over = _ends(attempt)
        line = Failover(
            "failover_abort" if over else "failover",
            "error" if over else "warning",
            _to_three(self._wall()),
            opening.id,
            provider,
            cut(model),
            number,
            str(attempt.fault),
            attempt.status,
            "exhausted" if over and attempt.then == "advance" else attempt.then,
            next_provider,
            cut(next_model),
            cut(attempt.reason),
            _to_three(attempt.seconds * 1000),
            _length(attempt.benched),
            opening.stream,
        )
        self._put(line)

    def finished(self, record: Record) -> None:
        if record.failures or record.outcome != "ok":
            self._told_of_failures(record)
        if self.access:
            self._put(access_line(record))

    def _told_of_failures(self, record: Record) -> None:
        failed = [a for a in record.attempts if a.outcome == "failed"]
        if record.outcome == "ok" and failed:
            line = Recovered(
                "failover_recovered",
                "info",
                _to_three(self._wall()),
                record.opening.id,
                cut(record.target),
                len(failed) + 1,
                str(failed[-1].fault),
                record.opening.stream,
            )
            self._put(line)
        elif record.outcome in {"failed", "broken"} and record.attempts:
            self._aborted(record, failed)

    def _aborted(self, record: Record, failed: list[Attempt]) -> None:
        """Who was left was passed over, or we stop. Where the last one failed, that was told."""
        if failed and _ends(failed[-1]):
            return
        last = record.attempts[-1]
        provider, _, model = last.target.partition("/")
        line = Failover(
            "failover_abort",
            "error",
            _to_three(self._wall()),
            record.opening.id,
            provider,
            cut(model),
            sum(a.outcome != "skipped" for a in record.attempts),
            str(last.fault or "unknown"),
            record.status,
            "stop" if last.then == "stop" else "exhausted",
            "",
            "",
            cut(record.reason),
            _to_three(record.seconds * 1000),
            stream=record.opening.stream,
        )
        self._put(line)

    def change(self, change: Change, now: float) -> None:
        """Somebody is benched, or is no longer; `now` by the tracker's clock."""
        bench = change.bench
        if bench is not None:
            if len(self._benched) >= TOLD_MOST:
                self._benched.clear()
            self._benched.add(change.key)
            why = bench.sentence(now)
            self.note("benched", "warning", key=cut(change.key), reason=why, source=bench.source)
        elif change.key in self._benched:  # most are cleared of a single failure: no news
            self._benched.discard(change.key)
            self.note("cleared", key=cut(change.key))

    def note(self, event: str, level: str = "info", **fields: object) -> None:
        """Something about the process itself: a reload, a lost neighbour."""
        self._put({"event": event, "level": level, "at": _to_three(self._wall()), **fields})

    def _put(self, line: object) -> None:
        lines = self._lines
        first = not lines
        lines += ENCODER.encode(line) + b"\n"  # a line that cannot be written leaves no trace
        if first and self._later is not None:
            self._later(self.flush)
        elif self._later is None or len(lines) >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered, all of it together."""
        lines, self._lines = self._lines, bytearray()
        if lines:
            self._write(bytes(lines))


class Failover(msgspec.Struct, omit_defaults=True, gc=False):
    """A failed attempt, or the end of a request that nobody answered."""

    event: str
    level: str
    at: float
    request_id: str
    provider: str
    model: str
    attempt: int
    error_class: str
    http_status: int | None
    then: str
    next_provider: str
    next_model: str
    error_snippet: str
    latency_ms: float
    benched_s: float | str | None = None
    stream: bool = False


class Recovered(msgspec.Struct, omit_defaults=True, gc=False):
    """A request that was answered after all."""

    event: str
    level: str
    at: float
    request_id: str
    recovered_on: str
    attempts: int
    prev_error_class: str
    stream: bool = False


class Access(msgspec.Struct, omit_defaults=True, gc=False):
    """One finished request, for logs and for people who grep."""

    event: str
    level: str
    at: float
    request_id: str
    surface: str
    model: str
    stream: bool
    key: str
    status: int
    outcome: str
    target: str
    attempts: int
    latency_ms: float
    bytes: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    reason: str = ""
    reasons: dict[str, str] = {}  # why those who did not answer did not; msgspec copies this


def access_line(record: Record) -> Access:
    opening, usage = record.opening, record.usage
    model, target = opening.model, record.target
    return Access(
        "request",
        "info",
        _to_three(opening.at),
        opening.id,
        opening.surface,
        model if len(model) <= SNIPPET else cut(model),
        opening.stream,
        opening.key,
        record.status,
        record.outcome,
        target if len(target) <= SNIPPET else cut(target),
        len(record.attempts),
        _to_three(record.seconds * 1000),
        record.sent,
        None if usage is None else usage.total_input,
        None if usage is None else usage.total_output,
        cut(record.reason) if record.reason else "",
        _reasons(record.attempts) if len(record.attempts) > 1 or record.outcome != "ok" else {},
    )


def _reasons(attempts: tuple[Attempt, ...]) -> dict[str, str]:
    """The last word on each target."""
    return {a.target: cut(a.reason or a.word) for a in attempts if a.outcome != "ok"}


def _length(seconds: float) -> float | str | None:
    if not seconds:
        return None
    return _to_three(seconds) if seconds < 1e9 else "until cleared"


def _ends(attempt: Attempt) -> bool:
    """Is a failed attempt the end of its request?"""
    return attempt.then == "stop" or not attempt.next


def _to_three(number: float) -> float:
    """Three decimals; `round` takes twice as long."""
    return int(number * 1000 + 0.5) / 1000


def cut(text: str) -> str:
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1] + "…"
