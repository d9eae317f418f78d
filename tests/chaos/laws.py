"""The contract's R1 to R13 as judgements over what everybody wrote down.

A law yields one item for each case it has looked at: "" if all is well, else what is wrong. A law
that looked at nothing has shown nothing, which the checker counts as a failure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from tests.chaos.company import PLANTED
from tests.chaos.lines import Case, Line, Run
from tests.chaos.spoken import unpack

Findings = Iterator[str]
Law = Callable[[Run], Findings]
MIB = 1 << 20
SECOND = 1.0  # what R7 and R8 allow
HAZE = 0.25  # seconds between a decision and its log line, or the start of a call and its arrival
OVERLAP = 0.3  # seconds until a target hears that a probe was given up
OF_A_KEY = ("auth", "out_of_credits")  # bench a credential, which returns to all at once
KILLED = -9  # how a worker ends that we kill
COUNTED = re.compile(
    r'^understudy_requests_total\{surface="(\w+)",status="(\d+)",outcome="(\w+)"\} (\d+)', re.M
)


def one_source(run: Run) -> Findings:
    """R1: what the client read is the beginning of one target's answer."""
    for case in run.cases:
        if case.text:
            sources = [t for t in case.tries if unpack(t["text"]).startswith(case.text)]
            yield "" if sources else f"{case.id}: no target said {case.text[:120]!r}"


def no_second_thoughts(run: Run) -> Findings:
    """R2: no attempt begins once a byte of the body is with the client."""
    for case in run.cases:
        first = case.client["first"]
        if first is not None and case.client["status"] == 200:
            late = [t for t in case.tries if t["began"] - t["lag"] > first and not t["stale"]]
            yield f"{case.id}: {late[0]['target']} was asked after that" if late else ""


def the_bench_is_kept(run: Run) -> Findings:
    """R3: a benched target is left alone; after its bench one call at a time finds out."""
    if not run.alone:
        return  # every worker has a bench of its own
    calls = _calls(run)
    reloads = [-inf, *(line["at"] for line in run.staged("taken")), inf]
    for line in run.log:
        seconds = line.get("benched_s", 0.0)
        long = isinstance(seconds, float | int) and seconds >= 4 * HAZE
        if not long:
            continue
        since = run.clock(line["at"])
        bench = Stay(f"{line['provider']}/{line['model']}", since, since + seconds)
        # Who came before a reload goes by what was known before it.
        known = max(at for at in reloads if at <= since + HAZE)
        heard = [call for call in calls[bench.target] if call["asked"] > known + HAZE]
        yield _asked_while(bench, heard)
        if line["error_class"] in OF_A_KEY:
            continue
        # Only benches that still run survive a reload, and both sides of it may probe.
        until = min(at for at in reloads if at > since + HAZE)
        yield _probed_twice(bench, heard, until)


@dataclass(frozen=True)
class Stay:
    """One bench, by the clock."""

    target: str
    since: float
    until: float


def _calls(run: Run) -> defaultdict[str, list[Line]]:
    """What every target was asked, and when its client had asked for it."""
    found: defaultdict[str, list[Line]] = defaultdict(list)
    for case in run.cases:
        for line in case.tries:
            if not line["stale"]:
                found[line["target"]].append({**line, "asked": case.client["sent"]})
    for lines in found.values():
        lines.sort(key=lambda line: float(line["began"]))
    return found


def _asked_while(bench: Stay, calls: list[Line]) -> str:
    low, high = bench.since + HAZE, bench.until - 2 * HAZE
    asked = [c["id"] for c in calls if c["began"] - c["lag"] > low and c["began"] < high]
    return f"{bench} was asked by {', '.join(asked)}" if asked else ""


def _probed_twice(bench: Stay, calls: list[Line], until: float) -> str:
    """Two calls at a time after the bench and before anything was proven well?"""
    before = None
    for call in calls:
        if not bench.until - HAZE <= call["began"] < until:
            continue
        if before is not None:
            if before["whole"]:
                return ""
            end = before["ended"] if before["left"] is None else before["left"]
            if call["began"] < end - OVERLAP - before["lag"]:
                return f"{bench} was probed by {before['id']} and {call['id']} at once"
        before = call
    return ""


def one_outcome(run: Run) -> Findings:
    """R4: each request ends once, and client and log tell the same end."""
    for case in run.cases:
        if case.spared:
            continue
        lines = case.requests
        if len(lines) != 1:
            # A client that left at once may have been gone before its request was read.
            missed = not lines and not case.stayed
            yield "" if missed else f"{case.id}: {len(lines)} ends in the log"
            continue
        if case.stayed:
            yield _agree(case, lines[0])


def _agree(case: Case, line: Line) -> str:
    client = case.client
    if not client["whole"]:
        return f"{case.id}: the answer was torn ({client['trouble']}), the log says {line}"
    ends = {"ok": (True, False), "broken": (False, True)}
    saw = (client["terminated"], bool(client["error"]))
    wanted = ends.get(line["outcome"], (False, saw[1]))
    if client["status"] != line["status"] or saw != wanted:
        told = f"{line['status']} {line['outcome']}"
        return f"{case.id}: saw {client['status']}, end and error {saw}; the log says {told}"
    return ""


def counts_agree(run: Run) -> Findings:
    """R4: the metrics count what the log tells."""
    if not run.alone:
        return  # who was killed took its counts along
    told = Counter(
        (line["surface"], str(line["status"]), line["outcome"])
        for line in run.log
        if line["event"] == "request"
    )
    # Pages fetched after the metrics were are in the log only.
    counted = Counter({(s, n, o): int(v) for s, n, o, v in COUNTED.findall(run.metrics)})
    for key in {*told, *counted} - {k for k in told if k[2] == "refused"}:
        same = told[key] == counted[key]
        yield "" if same else f"{key}: {told[key]} in the log, {counted[key]} counted"


def no_invented_end(run: Run) -> Findings:
    """R5: an end only where a target sent one, and then all it said."""
    for case in run.cases:
        if case.client["terminated"]:
            whole = [t for t in case.tries if t["whole"] and unpack(t["text"]) == case.text]
            yield "" if whole else f"{case.id}: an end that no target sent"


def no_empty_success(run: Run) -> Findings:
    """R6: a 200 is an answer; nothing passes for one."""
    for case in run.cases:
        client = case.client
        if client["status"] == 200 and case.stayed and client["whole"]:
            filtered = any(t["fault"] == "filtered" and t["whole"] for t in case.tries)
            fine = case.text.strip() or client["error"] or filtered
            yield "" if fine else f"{case.id}: 200 and nothing in it"


def who_leaves_is_let_go(run: Run) -> Findings:
    """R7: the upstream is closed within a second of the caller leaving, and nobody is blamed."""
    for case in run.cases:
        left = case.client["left"]
        if left is None or case.spared:
            continue
        for line in case.tries:
            if line["began"] <= left < line["ended"]:
                end = line["ended"] if line["left"] is None else line["left"]
                kept = end > left + SECOND + line["lag"]
                yield f"{case.id}: {line['target']} was kept on the line" if kept else ""
        blamed = [x for x in case.told if x.get("error_class") == "client_disconnect"]
        yield f"{case.id}: leaving was held against somebody" if blamed else ""


def all_ends_in_time(run: Run) -> Findings:
    """R8: by the deadline and a second, whatever drips."""
    for case in run.cases:
        client, allowed = case.client, case.client["deadline"] + SECOND
        took = client["ended"] - client["sent"]
        slow = client["way"] in ("slow", "trickles")  # its own doing
        late = took > allowed + client["lag"] and not slow and case.stayed
        yield f"{case.id}: {took:.2f} s of {allowed:.2f} at the client" if late else ""
        for line in case.requests:
            seconds = line["latency_ms"] / 1000
            late = seconds > allowed + client["lag"] and client["way"] != "slow"
            yield f"{case.id}: {seconds:.2f} s of {allowed:.2f} in the log" if late else ""


def memory_is_bounded(run: Run) -> Findings:
    """R9: never more than four caps and 64 MB above the start."""
    start = run.staged("start")[0]["rss"]
    most = 4 * run.begun["cap"] + 64 * MIB
    for line in run.staged("sample"):
        grown = line["rss"] - start
        yield f"{grown / MIB:.0f} MiB grown, {most / MIB:.0f} allowed" if grown > most else ""


def keys_stay_home(run: Run) -> Findings:
    """R10: no planted key in anything that was written or answered."""
    for name, data in run.papers.items():
        found = [label for label, key in PLANTED.items() if key.encode() in data]
        yield f"{name} holds the key of {', '.join(found)}" if found else ""
    for case in run.cases:
        leaks = case.client["leaks"]
        yield f"{case.id}: got the key of {', '.join(leaks)}" if leaks else ""


def outages_are_calm(run: Run) -> Findings:
    """R11: in an outage at most 1.2 attempts a request and ten more, over any 10 s."""
    cases = [case for case in run.cases if case.client["model"] == "outage"]
    begins = sorted(t["began"] for case in cases for t in case.tries)
    for low, since in enumerate(begins):
        until = since + 10.0
        attempts = bisect_right(begins, until) - low
        asking = sum(c.client["sent"] <= until and c.client["ended"] >= since for c in cases)
        bound = (1.2 * asking + 10) * (1 if run.alone else run.begun["workers"])
        yield f"{attempts} attempts for {asking} requests" if attempts > bound else ""


CALLERS_FAULTS = ("400", "422")


def callers_faults_end_it(run: Run) -> Findings:
    """R12: a bad request is told so at once, and nobody is marked for it."""
    for case in run.cases:
        heard = [line["error_class"] for line in case.told if "http_status" in line]
        # Where the gateway lost patience first, the refusal was never heard.
        refused = [t["fault"] in CALLERS_FAULTS and "permanent" in heard for t in case.tries]
        places = [n for n, found in enumerate(refused) if found]
        if not places or not case.stayed:
            continue
        target = case.tries[places[0]]["target"]
        marks = [
            line
            for line in case.told
            if line.get("error_class") == "permanent" and line.get("benched_s")
        ]
        if places[0] != len(case.tries) - 1:
            yield f"{case.id}: went on after {target} had refused it"
        elif case.client["status"] != int(CALLERS_FAULTS[case.tries[-1]["fault"] == "422"]):
            yield f"{case.id}: {case.client['status']} for a bad request"
        else:
            yield f"{case.id}: {target} was benched for a bad request" if marks else ""


def everybody_is_named(run: Run) -> Findings:
    """R13: who is told that all failed is told each one's reason."""
    for case in run.cases:
        client = case.client
        if client["status"] in (429, 503) and "no target could answer" in client["body"]:
            missing = [t for t in run.chains[client["model"]] if f"{t}: " not in client["body"]]
            yield f"{case.id}: no word of {', '.join(missing)}" if missing else ""


def nothing_is_left_over(run: Run) -> Findings:
    """After the last request: as many sockets as at the start, no memory grown since warm-up."""
    if not run.alone:
        return
    start, warm, after = (run.staged(name)[0] for name in ("start", "warm", "after"))
    open_now = after["sockets"] - start["sockets"]
    yield f"{open_now} sockets are left" if open_now > 1 else ""
    grown = (after["rss"] - warm["rss"]) / MIB
    yield f"{grown:.0f} MiB grown since warm-up" if grown > 24 else ""
    flying = re.search(r"^understudy_in_flight (\d+)", run.metrics, re.M)
    yield "" if flying and flying[1] == "0" else "requests are still in flight"


def reloads_are_heeded(run: Run) -> Findings:
    """G5: every good file is taken, every bad one refused, and the process ends well."""
    if run.alone:
        for event, word in (("taken", "reloaded"), ("refused", "reload_refused")):
            wanted = len(run.staged(event))
            found = sum(line["event"] == word for line in run.log)
            yield "" if wanted == found else f"{wanted} files {event}, {found} {word}"
    ended = [line for line in run.log if line["event"] == "worker_ended"]
    for line in ended:
        yield "" if line["code"] == KILLED else f"a worker ended by itself: {line}"
    mishaps = [line for line in run.log if line["event"] == "internal_error"]
    yield f"a fault of its own: {mishaps[0]}" if mishaps else ""
    codes = [line["code"] for line in run.staged("ended")]
    yield "" if codes == [0] else f"it ended with {codes}"


LAWS: tuple[tuple[str, Law], ...] = (
    ("R1", one_source),
    ("R2", no_second_thoughts),
    ("R3", the_bench_is_kept),
    ("R4", one_outcome),
    ("R4", counts_agree),
    ("R5", no_invented_end),
    ("R6", no_empty_success),
    ("R7", who_leaves_is_let_go),
    ("R8", all_ends_in_time),
    ("R9", memory_is_bounded),
    ("R10", keys_stay_home),
    ("R11", outages_are_calm),
    ("R12", callers_faults_end_it),
    ("R13", everybody_is_named),
    ("-", nothing_is_left_over),
    ("G5", reloads_are_heeded),
)
