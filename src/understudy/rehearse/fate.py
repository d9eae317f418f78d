"""What becomes of one attempt: when, and as what, decided the moment it begins.

An attempt is told as one event (an answer, or an error to be thrown into the walk), a stream that
gets as far as content as two. Everything the watchdog would do is worked out here as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from understudy.core.errors import OutOfTime, ProviderError, Stall
from understudy.core.faults import Fault
from understudy.core.walk import COMMITTED, Try
from understudy.rehearse.chance import BITS
from understudy.rehearse.flight import Actor, Flight
from understudy.rehearse.scenario import Outage

ANSWER = object()  # the end of an answer, as the target sent it

# What dies with a target when an outage begins; refusals leave alone what is under way.
FATAL = frozenset(
    (Fault.TRANSIENT, Fault.UNKNOWN, Fault.STALL_PRE_FIRST_BYTE, Fault.STALL_MID_STREAM)
)
SILENT = frozenset((Fault.STALL_PRE_FIRST_BYTE,))
STATUS = {
    Fault.TRANSIENT: 503,
    Fault.RATE_LIMIT: 429,
    Fault.AUTH: 401,
    Fault.OUT_OF_CREDITS: 402,
    Fault.PERMANENT: 400,
    Fault.CONTEXT_LENGTH: 400,
    Fault.MODEL_NOT_FOUND: 404,
}


@dataclass(frozen=True, slots=True)
class Beat:
    """Something that will be told to the walk."""

    at: float
    told: object  # ANSWER, COMMITTED, or an exception
    share: float = 1.0  # of the answer's tokens that were made by then
    billed: bool = True  # was there an answer to pay for


def fate(actor: Actor, flight: Flight, step: Try, now: float, draw: float) -> tuple[Beat, ...]:
    """The beats of this attempt, in order. `draw`, from 0 to 1, decides which error strikes."""
    outage = actor.outage(now)
    wait = actor.admits(step.credential, now)
    if flight.bad:
        return (_refusal(actor, flight, step, now, Fault.PERMANENT),)
    if outage is not None and outage.fault is not None:
        return _failing(actor, flight, step, now, outage.fault)
    if wait:
        return (_refusal(actor, flight, step, now, Fault.RATE_LIMIT, wait),)
    struck = _struck(actor, draw)
    if struck is not None:
        return _failing(actor, flight, step, now, struck)
    slow = 1.0 if outage is None else outage.slow
    return _working(actor, flight, step, now, slow)


def _struck(actor: Actor, draw: float) -> Fault | None:
    for fault, share in actor.role.errors:
        if draw < share:
            return fault
        draw -= share
    return None


def _refusal(
    actor: Actor, flight: Flight, step: Try, now: float, fault: Fault, wait: float = 0.0
) -> Beat:
    """It says no. Who takes longer over that than anybody waits is cut off; a request that is bad
    is seen to be at a glance, before that."""
    hint = wait if wait and actor.role.limit is not None and actor.role.limit.hint else None
    error = ProviderError(fault, actor.role.key, STATUS.get(fault), hint, message="simulated")
    at = now + actor.failing[actor.bits(BITS)]
    limited = _limited(actor, flight, step, now)
    if at > limited.at and not flight.bad:
        return limited
    return Beat(min(at, limited.at), error, 0.0, billed=False)


def _failing(
    actor: Actor, flight: Flight, step: Try, now: float, fault: Fault
) -> tuple[Beat, ...]:
    if fault is Fault.STALL_PRE_FIRST_BYTE:
        return (_limited(actor, flight, step, now),)
    if fault is Fault.STALL_MID_STREAM:
        return _breaking(actor, flight, step, now)
    if fault is Fault.EMPTY_CONTENT:
        *_, last = _working(actor, flight, step, now, 1.0)
        if isinstance(last.told, Exception):
            return (last,)
        error = ProviderError(fault, actor.role.key, 200, message="simulated: nothing came")
        return (Beat(last.at, error),)
    return (_refusal(actor, flight, step, now, fault),)


def _breaking(actor: Actor, flight: Flight, step: Try, now: float) -> tuple[Beat, ...]:
    """Half an answer, then the end of the connection."""
    beats = _working(actor, flight, step, now, 1.0)
    half = now + (beats[-1].at - now) / 2
    if not flight.stream or len(beats) == 1:
        return (Beat(half, _lost(actor, Fault.TRANSIENT), 0.5),)
    half = beats[0].at + (beats[-1].at - beats[0].at) / 2
    return (beats[0], Beat(half, _lost(actor, Fault.STALL_MID_STREAM), 0.5))


def _lost(actor: Actor, fault: Fault) -> ProviderError:
    return ProviderError(fault, actor.role.key, message="simulated: the connection broke")


def _working(actor: Actor, flight: Flight, step: Try, now: float, slow: float) -> tuple[Beat, ...]:
    """A good answer, unless it takes too long or the target dies meanwhile."""
    if not flight.stream:
        end = now + slow * actor.plain_seconds(flight.tokens)
        limited = _limited(actor, flight, step, now)
        beat = Beat(end, ANSWER) if end <= limited.at else limited
        return (_survived(actor, flight, step, now, beat),)
    first = now + slow * actor.firsts[actor.bits(BITS)]
    limited = _limited(actor, flight, step, now)
    if first > limited.at:
        return (_survived(actor, flight, step, now, limited),)
    begun = _survived(actor, flight, step, now, Beat(first, COMMITTED))
    if begun.told is not COMMITTED:
        return (begun,)
    end = first + slow * flight.tokens / actor.speeds[actor.bits(BITS)]
    over = step.deadline
    last = Beat(end, ANSWER) if end <= over else Beat(over, OutOfTime("time was up"), 0.5)
    return (begun, _finished(actor, step, first, last))


def _limited(actor: Actor, flight: Flight, step: Try, now: float) -> Beat:
    """Where the watchdog ends it: our patience, or the target's share of the caller's time."""
    patience = actor.role.patience
    own = patience.first_byte if flight.stream else patience.response
    theirs = step.limit
    if own > 0 and (theirs is None or own <= theirs):
        return Beat(now + own, Stall("pre_first_byte", step.target.provider, own), 0.0)
    late = 1e18 if theirs is None else theirs
    return Beat(now + late, OutOfTime("no time left"), 0.0)


def _survived(actor: Actor, flight: Flight, step: Try, now: float, beat: Beat) -> Beat:
    """The beat, or what an outage that begins before it makes of it. No content has come yet."""
    outage = _fatal(actor, now, beat.at)
    if outage is None:
        return beat
    share = (outage.start - now) / (beat.at - now)
    if outage.fault not in SILENT:
        return Beat(outage.start, _lost(actor, Fault.TRANSIENT), share)
    limited = _limited(actor, flight, step, now)
    return beat if beat.at == limited.at else replace(limited, share=share)


def _finished(actor: Actor, step: Try, first: float, beat: Beat) -> Beat:
    """The same for the end of a stream whose first content has come."""
    outage = _fatal(actor, first, beat.at)
    if outage is None:
        return beat
    share = (outage.start - first) / (beat.at - first)
    idle = actor.role.patience.idle
    quiet = outage.start + idle if idle > 0 else math.inf
    if outage.fault in SILENT and step.deadline < quiet:
        return Beat(step.deadline, OutOfTime("time was up"), share)
    if outage.fault in SILENT and quiet < math.inf:
        return Beat(quiet, Stall("mid_stream", actor.candidate.target.provider, idle), share)
    # A target that fails in ways of its own says so in an event; others just hang up.
    fault = Fault.UNKNOWN if outage.fault is Fault.UNKNOWN else Fault.STALL_MID_STREAM
    return Beat(outage.start, _lost(actor, fault), share)


def _fatal(actor: Actor, since: float, until: float) -> Outage | None:
    for outage in actor.outages:
        if since < outage.start < until and outage.fault in FATAL:
            return outage
    return None
