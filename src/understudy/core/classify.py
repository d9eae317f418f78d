"""Failures to faults: gathers the evidence, asks the tables in order, names the row that decided.

The order is the contract's (F1): our caller, our watchdog, machine codes innermost first, header
types, sentences of the message, the status, then whatever is left. Vendors are rows, not code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from understudy.core import spoken
from understudy.core.errors import InvalidRequest, ProviderError, Stall
from understudy.core.evidence import Facts, read_body, squash
from understudy.core.faults import Fault, Verdict
from understudy.core.hints import pairs, retry_after
from understudy.core.rules import Phrasebook, Rule, Sample, Saying, by_code, holds, said, sayings
from understudy.core.rules_codes import STRONG
from understudy.core.rules_local import CALLER_PIPE, LEFT, SLOW, STALL, TRANSPORT, TYPES
from understudy.core.rules_says import SPOKEN
from understudy.core.rules_special import BROKEN_OFF, EMPTY, HEALING, PAIRS
from understudy.core.rules_weak import BARE, STATUS, WORDS
from understudy.core.testimony import Told, tell, unfold

CODES = by_code(STRONG)
GENERIC = by_code((WORDS,))
NOTED = frozenset(CODES) | frozenset(GENERIC)
KINDS = {name: rule for rule in TYPES for name in rule.words()}
STATUSES = {number: rule for rule in STATUS for number in rule.status}
SENTENCES, LAST_WORDS = Phrasebook.of(SPOKEN), sayings(BARE)
GONE, SILENCE, PIPE = sayings(LEFT), sayings(STALL), sayings(CALLER_PIPE)
TOO_SLOW, BROKEN = sayings(SLOW), sayings(TRANSPORT)
TWOFOLD = tuple((sayings((rule,)), rule) for rule in PAIRS)
UNCODED = tuple(place for place, rule in enumerate(PAIRS) if not rule.codes)
CODED = {  # words to the places of the pairs that ask for them
    word: tuple(n for n, pair in enumerate(PAIRS) if word in map(squash, pair.words()))
    for rule in PAIRS
    for word in map(squash, rule.words())
}
TYPE_HEADERS = ("x-amzn-errortype", "x-amz-error-type", "x-ms-error-code")

SHORT_WAIT = 3600.0  # seconds; a 402 that ends within it is a matter of pace
# Other faults are not cured by waiting, whatever delay they promise.
HEALED_BY_TIME = frozenset((Fault.TRANSIENT, Fault.RATE_LIMIT, Fault.UNKNOWN))

URL = re.compile(r"\bhttps?://[^\s'\"]+")
PARTS = re.compile(r"[_.-]+|(?<=[a-z])(?=[A-Z])")  # where a machine word is put together
Found = tuple[Rule, str]  # the row, and what in the evidence it matched
NOTHING = Rule("nothing recognised", Fault.UNKNOWN, Sample())


@dataclass(frozen=True, slots=True)
class Case:
    """All the evidence about one failure."""

    facts: Facts
    status: int  # the one that decides; 0 when there is none, or only a 200 without a number
    answered: bool  # a response had begun
    provider: str
    headers: Mapping[str, str]
    stream: bool
    local: str  # what our side said: exception text, lower case, "" if nothing
    kinds: tuple[str, ...]  # names of exception types, most special first


def classify(  # noqa: PLR0913 - each is one kind of evidence, and all are optional
    error: BaseException | str | None = None,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | Iterable[tuple[object, object]] | None = None,
    body: object = None,
    provider: str | None = None,
    stream: bool = False,
    cancelled: bool = False,
    now: float | None = None,
) -> Verdict:
    """The fault of one failed attempt, from whatever is known of it. Never raises.

    `cancelled` means that our caller left. `now` is the wall clock in epoch seconds, for delays
    given as a point in time by an answer without a `Date`.
    """
    if cancelled:
        return Verdict(Fault.CLIENT_DISCONNECT, evidence="our caller cancelled")
    if type(error) is ProviderError:  # by far the most frequent, and judged where it was made
        return _as_judged(error)
    links = unfold(error) if isinstance(error, BaseException) else []
    known = _judged_before(links)
    if known is not None:
        return known
    told = tell(links) if links else Told(text=error if isinstance(error, str) else "")
    number = _number(told.status if status is None else status)
    read = _read(told, number, told.body if body is None else body)
    case = Case(
        read,
        _deciding(number, read),
        number > 0,
        str(provider or "").lower(),
        pairs(told.headers if headers is None else headers),
        stream,
        _our_side(told.text, number, read),
        told.kinds,
    )
    return _verdict(case, now)


def _judged_before(links: Iterable[BaseException]) -> Verdict | None:
    for link in links:
        if isinstance(link, ProviderError):
            return _as_judged(link)
        if isinstance(link, InvalidRequest):
            return Verdict(Fault.PERMANENT, evidence="the request itself is wrong")
        if isinstance(link, Stall):
            mid = link.phase == "mid_stream"
            fault = Fault.STALL_MID_STREAM if mid else Fault.STALL_PRE_FIRST_BYTE
            return Verdict(fault, evidence=f"our watchdog, {link.phase}")
    return None


def _as_judged(error: ProviderError) -> Verdict:
    return Verdict(error.fault, error.retry_after, error.retry_source, "judged before")


def _number(status: object) -> int:
    """A status as a number; 0 for none, and for what is none."""
    return int(status) if isinstance(status, int) and 0 < status < 1000 else 0


def _read(told: Told, status: int, body: object) -> Facts:
    if not body:  # all there is; a URL may have a model in it, which says nothing
        body = told.text if status < 300 else URL.sub("", told.text)
    return read_body(body, refused=status >= 300)


def _our_side(text: str, status: int, facts: Facts) -> str:
    """The text of our own exception; without a response the body is that text."""
    if text:
        return f"\n{text.lower()}\n"
    return "" if status or facts.errant else facts.text


def _deciding(status: int, facts: Facts) -> int:
    """The status to go by. A 5xx or a 200 may hide another one in its body."""
    if 300 <= status < 500 or status >= 600:
        return status
    if 0 < status < 300 and not facts.errant:
        return 0
    numbers = chain(facts.numbers, spoken.statuses(facts.first_hand))
    return next((n for n in numbers if n < 500 or status < 300), status if status >= 500 else 0)


def _verdict(case: Case, now: float | None) -> Verdict:
    rule, what = _judge(case)
    delay, source = None, ""
    if rule.fault in HEALED_BY_TIME or case.status == 402:
        delay, source = retry_after(case.headers, case.facts, now)
    if case.status == 402 and delay is not None and delay <= SHORT_WAIT:
        rule, what = HEALING, "status 402"
    elif case.status == 402:
        delay, source = None, ""
    evidence = f"{rule.name}: {what}" if what else rule.name
    return Verdict(rule.fault, delay, source, evidence)


def _judge(case: Case) -> Found:
    for ask in TIERS:
        found = ask(case)
        if found is not None:
            return found
    return NOTHING, ""


def _ours(case: Case) -> Found | None:
    """What happened on our side, unless the other side said something itself."""
    if case.facts.errant or case.status >= 300:
        return None
    begun = case.facts.answer.content or case.facts.answer.thought
    for name in case.kinds:
        if name in KINDS:
            return _after(KINDS[name], begun), name
    tables = (GONE, SILENCE, TOO_SLOW, BROKEN) if case.answered else (GONE, SILENCE)
    for table in tables:
        for saying in said(case.local, table):
            gone = table is GONE
            return saying.rule if gone else _after(saying.rule, begun), _quoted(saying.phrase)
    if case.stream and not case.answered and not case.kinds:
        return _hear(said(case.local, PIPE), case)
    return None


def _after(rule: Rule, begun: bool) -> Rule:
    """The same silence or break, after content was delivered."""
    return replace(rule, fault=Fault.STALL_MID_STREAM) if begun else rule


def _answer(case: Case) -> Found | None:
    """A 200 that is no error: an empty answer, or half of one."""
    if not case.answered or case.status or case.facts.errant:
        return None
    answer = case.facts.answer
    if not answer.content:
        return (EMPTY, "no content") if answer.seen or case.facts.blank else None
    if case.stream and not answer.ended:
        return BROKEN_OFF, "no end of the stream"
    return NOTHING, "this is an answer"


def _twofold(case: Case) -> Found | None:
    coded = {place for _, code in case.facts.codes for place in CODED.get(code, ())}
    for place in sorted(coded.union(UNCODED)) if coded else UNCODED:
        phrases, rule = TWOFOLD[place]
        if holds(rule, case.status, case.provider) and (
            not phrases or any(said(case.facts.text, phrases))
        ):
            return rule, f"status {case.status}"
    return None


def _codes(case: Case) -> Found | None:
    """The heaviest meaning of the innermost level that means anything."""
    kinds = tuple(
        (-1, squash(case.headers[h].partition(":")[0])) for h in TYPE_HEADERS if h in case.headers
    )
    best: tuple[int, int, Rule, str] | None = None
    for depth, code in (*case.facts.codes, *kinds):
        weight, rule = CODES.get(code, (99, NOTHING))
        if weight == 99 or not holds(rule, case.status, case.provider):
            continue
        if best is None or (-depth, weight) < best[:2]:
            best = (-depth, weight, rule, f"code {code}")
    return best and best[2:]


def _sentences(case: Case) -> Found | None:
    return _hear(SENTENCES.said(case.facts.text), case)


def _spelled(case: Case) -> Found | None:
    """A machine word nobody has noted may still say in so many words what it means."""
    words = [w for w in case.facts.spelled if squash(w) not in NOTED]
    told = [PARTS.sub(" ", word).lower() for word in words]
    return _hear(SENTENCES.said("\n{}\n".format("\n".join(told))), case) if told else None


def _status(case: Case) -> Found | None:
    rule = STATUSES.get(case.status)
    return None if rule is None else (rule, f"status {case.status}")


def _words(case: Case) -> Found | None:
    for _, code in case.facts.codes:
        if code in GENERIC:
            return GENERIC[code][1], f"word {code}"
    return None


def _broken(case: Case) -> Found | None:
    return None if case.status else _hear(said(case.local or case.facts.text, BROKEN), case)


def _bare(case: Case) -> Found | None:
    return None if case.status else _hear(said(case.facts.text, LAST_WORDS), case)


def _hear(heard: Iterable[Saying], case: Case) -> Found | None:
    for saying in heard:
        if holds(saying.rule, case.status, case.provider):
            return saying.rule, _quoted(saying.phrase)
    return None


def _quoted(phrase: str) -> str:
    return f"says {phrase!r}"


TIERS: tuple[Callable[[Case], Found | None], ...] = (
    _ours,
    _answer,
    _twofold,
    _codes,
    _sentences,
    _spelled,
    _status,
    _words,
    _broken,
    _bare,
)
