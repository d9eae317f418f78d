"""JSON log lines: `failover`, `failover_recovered`, `failover_abort`, and one per request.

A failed attempt that is followed by another is a `failover`; a request that ends in failure has
exactly one `failover_abort`, one that was saved exactly one `failover_recovered`. Fields as the
source of the taxonomy has them. Snippets are cut at 200 characters and were cleared of secrets
before they got here. Lines are gathered and written together.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from understudy.core.target import Attempt
from understudy.gateway.record import Opening, Record

SNIPPET = 200
Write = Callable[[bytes], None]
ENCODER = msgspec.json.Encoder()


class LogLines:
    """Writes lines as attempts fail and requests end."""

    def __init__(self, write: Write, wall: Callable[[], float], *, access: bool = True) -> None:
        self.access = access
        self._write = write
        self._wall = wall

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        if attempt.outcome != "failed":
            return
        provider, _, model = attempt.target.partition("/")
        next_provider, _, next_model = attempt.next.partition("/")
        over = _ends(attempt)
        line: dict[str, object] = {
            "event": "failover_abort" if over else "failover",
            "level": "error" if over else "warning",
            "at": round(self._wall(), 3),
            "request_id": opening.id,
            "provider": provider,
            "model": cut(model),
            "attempt": number,
            "error_class": str(attempt.fault),
            "http_status": attempt.status,
            "then": "exhausted" if over and attempt.then == "advance" else attempt.then,
            "next_provider": next_provider,
            "next_model": cut(next_model),
            "error_snippet": cut(attempt.reason),
            "latency_ms": round(attempt.seconds * 1000, 3),
        }
        if attempt.benched:
            line["benched_s"] = (
                round(attempt.benched, 3) if attempt.benched < 1e9 else "until cleared"
            )
        if opening.stream:
            line["stream"] = True
        self._put(line)

    def finished(self, record: Record) -> None:
        failed = [a for a in record.attempts if a.outcome == "failed"]
        if record.outcome == "ok" and failed:
            line = {
                "event": "failover_recovered",
                "level": "info",
                "at": round(self._wall(), 3),
                "request_id": record.opening.id,
                "recovered_on": cut(record.target),
                "attempts": len(failed) + 1,
                "prev_error_class": str(failed[-1].fault),
            }
            self._put({**line, "stream": True} if record.opening.stream else line)
        elif record.outcome == "failed" and record.attempts:
            self._exhausted(record, failed)
        if self.access:
            self._put(access_line(record))

    def _exhausted(self, record: Record, failed: list[Attempt]) -> None:
        """Those who were left were passed over; where the last one failed, that was told."""
        if failed and _ends(failed[-1]):
            return
        last = record.attempts[-1]
        provider, _, model = last.target.partition("/")
        line = {
            "event": "failover_abort",
            "level": "error",
            "at": round(self._wall(), 3),
            "request_id": record.opening.id,
            "provider": provider,
            "model": cut(model),
            "attempt": len(failed),
            "error_class": str(last.fault or "unknown"),
            "http_status": record.status,
            "then": "exhausted",
            "next_provider": "",
            "next_model": "",
            "error_snippet": cut(record.reason),
            "latency_ms": round(record.seconds * 1000, 3),
        }
        self._put({**line, "stream": True} if record.opening.stream else line)

    def note(self, event: str, level: str = "info", **fields: object) -> None:
        """Something about the process itself: a reload, a lost neighbour."""
        self._put({"event": event, "level": level, "at": round(self._wall(), 3), **fields})

    def _put(self, line: dict[str, object]) -> None:
        self._write(ENCODER.encode(line) + b"\n")


def access_line(record: Record) -> dict[str, object]:
    """One finished request, for logs and for people who grep."""
    opening = record.opening
    line: dict[str, object] = {
        "event": "request",
        "level": "info",
        "at": round(opening.at, 3),
        "request_id": opening.id,
        "surface": opening.surface,
        "model": cut(opening.model),
        "stream": opening.stream,
        "key": opening.key,
        "status": record.status,
        "outcome": record.outcome,
        "target": cut(record.target),
        "attempts": len(record.attempts),
        "latency_ms": round(record.seconds * 1000, 3),
        "bytes": record.sent,
    }
    if record.usage is not None:
        line["input_tokens"] = record.usage.total_input
        line["output_tokens"] = record.usage.total_output
    if record.reason:
        line["reason"] = cut(record.reason)
    return line


def _ends(attempt: Attempt) -> bool:
    """Is a failed attempt the end of its request?"""
    return attempt.then == "stop" or not attempt.next


def cut(text: str) -> str:
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1] + "…"


class Gathered:
    """Collects lines and hands them on together: one write for many requests."""

    def __init__(self, write: Write, later: Callable[[Callable[[], None]], None]) -> None:
        self._write = write
        self._later = later
        self._lines: list[bytes] = []

    def __call__(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == 1:
            self._later(self.flush)
        elif len(self._lines) >= 4096:
            self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._write(b"".join(lines))
