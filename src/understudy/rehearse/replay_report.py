"""Before and after: what happened, what would have happened, and for whom it differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from understudy.observe.journal_lines import Benched
from understudy.rehearse.replay import Progress, Replay, Rerun
from understudy.rehearse.replay_facts import Facts
from understudy.rehearse.replay_read import Asked, Library
from understudy.rehearse.replay_settings import Changes
from understudy.rehearse.score import share_of
from understudy.rehearse.table import aligned, count, seconds, share

SHOWN = 10  # changed requests that are told in words
LOST = ("failed", "broken")


@dataclass(frozen=True, slots=True)
class Numbers:
    """One history in numbers. Times in seconds; None: there was no answer."""

    requests: int
    answered: int
    failed: int  # before any content
    broken: int  # after it
    left: int
    success: float  # share of those whose caller stayed
    failovers: int  # answered by another than the first of the chain
    attempts: int
    wasted_attempts: int
    benches: int
    latency_p50: float | None  # to the first content of a stream, to the whole of a plain answer
    latency_p99: float | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How one request went, in either history."""

    outcome: str
    story: str  # "p/a=transient, p/b=ok"
    tries: int
    over: bool  # answered by another than the first
    latency: float | None


@dataclass(frozen=True, slots=True)
class Changed:
    """A request that went otherwise."""

    id: str
    at: float  # wall clock
    before: Ending
    after: Ending

    @property
    def means(self) -> str:
        """`saved`, `lost`, or `otherwise`."""
        if self.before.outcome in LOST and self.after.outcome == "ok":
            return "saved"
        if self.before.outcome == "ok" and self.after.outcome in LOST:
            return "lost"
        return "otherwise"

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


@dataclass(slots=True)
class Comparison:
    """What a replay came to."""

    settings: tuple[str, ...]
    before: Numbers
    after: Numbers
    changed: list[Changed]
    sure: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def count(self, means: str) -> int:
        return sum(one.means == means for one in self.changed)


def compare(library: Library, changes: Changes, progress: Progress | None = None) -> Comparison:
    """Play every run of a library again."""
    facts = Facts(library.runs)
    replays = [Replay(run, facts, changes, progress) for run in library.runs]
    pairs: list[Changed] = []
    changed: list[Changed] = []
    for replay in replays:
        for rerun in replay.play_all():
            pair = _pair(rerun, replay.run.epoch)
            if rerun.asked.outcome:
                pairs.append(pair)
            if _matters(rerun, pair, changes):
                changed.append(pair)
    sure = sum((replay.sure for replay in replays), Counter[str]())
    benches = sum(
        isinstance(turn, Benched) and not turn.ordered and turn.at >= run.begins
        for run in library.runs
        for turn in run.turns
    )
    return Comparison(
        changes.settings,
        numbers([pair.before for pair in pairs], benches),
        numbers([pair.after for pair in pairs], sum(replay.benches for replay in replays)),
        sorted(changed, key=lambda one: one.at),
        sure,
        notes(library, replays),
    )


def _matters(rerun: Rerun, pair: Changed, changes: Changes) -> bool:
    """With the same settings every decision counts, with others what callers would notice."""
    if not changes:
        return rerun.differs or bool(rerun.asked.outcome) != bool(rerun.outcome)
    told = bool(rerun.asked.outcome)
    return told and (pair.before.outcome, pair.before.story) != (
        pair.after.outcome,
        pair.after.story,
    )


def _pair(rerun: Rerun, epoch: float) -> Changed:
    asked = rerun.asked
    head = asked.chain.members[0].target
    return Changed(asked.id, asked.at + epoch, _before(asked, head), _after(rerun, head))


def _before(asked: Asked, head: str) -> Ending:
    last = asked.attempts[-1] if asked.attempts else None
    latency = None
    if asked.outcome == "ok" and last is not None:
        latency = last.began + (last.seconds if last.first is None else last.first) - asked.at
    return Ending(
        asked.outcome,
        ", ".join(f"{tried.target}={tried.word}" for tried in asked.attempts),
        sum(tried.outcome != "skipped" for tried in asked.attempts),
        asked.outcome == "ok" and last is not None and last.target != head,
        latency,
    )


def _after(rerun: Rerun, head: str) -> Ending:
    story, latency = rerun.story, None
    if rerun.outcome == "ok":
        ready = rerun.ended if rerun.committed < 0.0 else rerun.committed
        latency = ready - rerun.asked.at
    return Ending(
        rerun.outcome,
        ", ".join(f"{attempt.target}={attempt.word}" for attempt in story),
        sum(attempt.outcome != "skipped" for attempt in story),
        rerun.outcome == "ok" and story[-1].target != head,
        latency,
    )


def numbers(endings: Sequence[Ending], benches: int) -> Numbers:
    outcomes = Counter(ending.outcome for ending in endings)
    answered, stayed = outcomes["ok"], len(endings) - outcomes["left"]
    latency = sorted(ending.latency for ending in endings if ending.latency is not None)
    tries = sum(ending.tries for ending in endings)
    return Numbers(
        requests=len(endings),
        answered=answered,
        failed=outcomes["failed"],
        broken=outcomes["broken"],
        left=outcomes["left"],
        success=answered / stayed if stayed else 1.0,
        failovers=sum(ending.over for ending in endings),
        attempts=tries,
        wasted_attempts=tries - answered,
        benches=benches,
        latency_p50=share_of(latency, 0.5),
        latency_p99=share_of(latency, 0.99),
    )


def notes(library: Library, replays: Iterable[Replay]) -> list[str]:
    """What the journal does not tell."""
    early = sum(replay.early for replay in replays)
    unfinished = sum(not asked.outcome for run in library.runs for asked in run.requests)
    lost = sum(run.lost for run in library.runs)
    found = [f"{name}: the last line is torn and was left out" for name in library.torn]
    if library.damages:
        where = ", ".join(library.damaged) + (", …" if library.damages > 5 else "")
        found.append(f"{_some(library.damages, 'line')} could not be read: {where}")
    rows = (
        (lost, "line", "could not be written by the gateway"),
        (early, "request", "began before the journal does"),
        (unfinished, "request", "had not ended when the journal does"),
        (sum(run.refused for run in library.runs), "request", "never got to a chain"),
    )
    return found + [f"{_some(number, noun)} {what}" for number, noun, what in rows if number]


def _some(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


# Field, words, form.
ROWS = (
    ("requests", "requests", count),
    ("success", "answered", share),
    ("failed", "failed before content", count),
    ("broken", "broken after content", count),
    ("left", "callers who left", count),
    ("failovers", "answered by another than the first", count),
    ("attempts", "attempts", count),
    ("wasted_attempts", "wasted attempts", count),
    ("benches", "benches", count),
    ("latency_p50", "latency, median", seconds),
    ("latency_p99", "latency, 99 %", seconds),
)


def text(found: Comparison) -> str:
    """For people."""
    before, after = asdict(found.before), asdict(found.after)
    lines = [["", "then", ", ".join(found.settings) or "again"]]
    lines += [[words, form(before[name]), form(after[name])] for name, words, form in ROWS]
    return "\n".join([aligned(lines), "", *_changes(found), *_sureness(found)])


def _changes(found: Comparison) -> list[str]:
    if not found.changed:
        what = "goes as it went" if found.settings else "is decided as it was"
        return [f"every request {what}"]
    saved, lost = found.count("saved"), found.count("lost")
    many = _some(len(found.changed), "request")
    told = [f"{many} would have gone otherwise: {saved:,} saved, {lost:,} lost"]
    for one in found.changed[:SHOWN]:
        told.append(f"{one.when}  {one.id}  {one.means}")
        told.append(f"    then  {one.before.outcome or 'unfinished'}: {one.before.story or '-'}")
        told.append(f"    now   {one.after.outcome or 'unfinished'}: {one.after.story or '-'}")
    if len(found.changed) > SHOWN:
        told.append(f"… and {len(found.changed) - SHOWN:,} more; --json lists them all")
    return told


def _sureness(found: Comparison) -> list[str]:
    inferred, assumed = found.sure["inferred"], found.sure["assumed"]
    if not (inferred or assumed):
        return []
    return [
        f"{_some(inferred + assumed, 'attempt')} of {sum(found.sure.values()):,} "
        f"were never made: {inferred:,} judged by what the target did to others at about that "
        f"time, {assumed:,} taken to be well because nobody had asked it"
    ]


def to_dict(found: Comparison) -> dict[str, object]:
    """For machines."""
    return {
        "settings": list(found.settings),
        "before": asdict(found.before),
        "after": asdict(found.after),
        "changed": len(found.changed),
        "saved": found.count("saved"),
        "lost": found.count("lost"),
        "attempts": {word: found.sure[word] for word in ("known", "inferred", "assumed")},
        "notes": found.notes,
        "requests": [
            {
                "id": one.id,
                "at": round(one.at, 3),
                "means": one.means,
                "before": {"outcome": one.before.outcome, "story": one.before.story},
                "after": {"outcome": one.after.outcome, "story": one.after.story},
            }
            for one in found.changed
        ],
    }
