"""`understudy classify`: a pasted failure, or many rows, put into the fault table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from understudy.core.classify import classify
from understudy.core.errors import InvalidRequest
from understudy.core.faults import Fault, Verdict
from understudy.core.policy import AVAILABILITY, FAIL_FAST, Policy
from understudy.core.words import in_seconds

STATUS_LINE = re.compile(r"HTTP/[\d.]+ (\d{3})")


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure as people have it: an HTTP answer, or the text of an exception."""

    id: object = ""  # as the row has it
    provider: str | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: object = None
    stream: bool = False
    error: str | None = None

    def verdict(self, now: float | None = None) -> Verdict:
        return classify(
            self.error,
            status=self.status,
            headers=self.headers,
            body=self.body,
            provider=self.provider,
            stream=self.stream,
            now=now,
        )


def read_paste(text: str) -> Failure:
    """`curl -i` output, a JSON row, a bare body, or the text of an exception."""
    text = text.strip()
    if match := STATUS_LINE.match(text):
        head, _, body = text.replace("\r\n", "\n").partition("\n\n")
        # Interim and proxy answers come first: the last head counts.
        while body.startswith("HTTP/") and (again := STATUS_LINE.match(body)):
            match = again
            head, _, body = body.partition("\n\n")
        return Failure(status=int(match[1]), headers=_headers(head), body=body)
    row = _object(text)
    if row is not None and ("status" in row or "body" in row):
        return read_row(row, "the pasted row")
    return Failure(body=text) if row is not None else Failure(error=text)


def read_row(row: dict[str, object], where: str) -> Failure:
    """A row of a failures file; raises InvalidRequest naming what is wrong and where."""
    status, headers = row.get("status"), row.get("headers") or {}
    if status is not None and (not isinstance(status, int) or isinstance(status, bool)):
        raise InvalidRequest(f"{where}: status is {status!r}; give a number or null")
    if not isinstance(headers, dict):
        raise InvalidRequest(f"{where}: headers is {headers!r}; give an object")
    provider, error = row.get("provider"), row.get("error")
    return Failure(
        row.get("id", ""),
        None if provider is None else str(provider),
        status,
        {str(name): str(value) for name, value in headers.items()},
        row.get("body"),
        bool(row.get("stream")),
        None if error is None else str(error),
    )


def judge_rows(lines: Iterable[str]) -> Iterator[tuple[dict[str, object] | None, str]]:
    """For each line what to print, or None and what is wrong with it; blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            failure = read_row(_row(line, number), f"line {number}")
        except InvalidRequest as error:
            yield None, str(error)
            continue
        verdict = failure.verdict()
        told: dict[str, object] = {
            "id": failure.id,
            "fault": str(verdict.fault),
            "retry_after_s": verdict.retry_after,
        }
        yield told, ""


def explain(verdict: Verdict) -> dict[str, object]:
    """Everything about one verdict: the fault, what decided it, the delay, what follows."""
    return {
        "fault": str(verdict.fault),
        "evidence": verdict.evidence,
        "retry_after_s": verdict.retry_after,
        "retry_after_source": verdict.source,
        "then": {p.name: consequence(p, verdict) for p in (FAIL_FAST, AVAILABILITY)},
    }


def rendered(told: dict[str, object]) -> str:
    """The same for people."""
    delay, then = told["retry_after_s"], told["then"]
    assert isinstance(then, dict)
    lines = [
        f"fault     {told['fault']}",
        f"evidence  {told['evidence']}",
        f"delay     {in_seconds(delay) if isinstance(delay, float | int) else 'none given'}",
    ]
    return "\n".join([*lines, *(f"{name:<13} {sentence}" for name, sentence in then.items())])


THEN = {
    "advance": "advance to the next target",
    "larger": "advance to targets with a larger known window, else stop",
    "stop": "stop, the error goes to the caller",
}
MARKS = {
    "none": "nobody is marked",
    "count": "one failure is counted against the target",
    "hint": "it is benched for the provider's own delay, or one failure is counted",
    "hold": "it is benched for the provider's own delay, or for the current cooldown",
    "degrade": "the credential is benched for {degrade}",
    "session": "the credential is out {session}",
}


def consequence(policy: Policy, verdict: Verdict) -> str:
    """One policy row as a sentence."""
    rule = policy.rule(Fault(verdict.fault))
    hinted = verdict.retry_after is not None
    retried = rule.retry == "yes" or (rule.retry == "unhinted" and not hinted)
    session = (
        "until cleared"
        if policy.session_seconds == float("inf")
        else f"for {in_seconds(policy.session_seconds)}"
    )
    times = policy.transient_retries
    steps = [
        ("retry once" if times == 1 else f"retry up to {times} times") if retried else "",
        "next credential" if rule.rotate else "",
        THEN[str(rule.then)],
    ]
    degrade = in_seconds(policy.degrade_seconds)
    mark = MARKS[str(rule.mark)].format(degrade=degrade, session=session)
    return f"{', then '.join(step for step in steps if step)}; {mark}"


def _headers(head: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.splitlines()[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _row(line: str, number: int) -> dict[str, object]:
    row = _object(line)
    if row is None:
        raise InvalidRequest(f"line {number}: not a JSON object: {line.strip()[:60]!r}")
    return row
