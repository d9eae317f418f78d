"""The async driver of the walk, and the limits under which a target is called.

Knows providers and time; decides nothing: every decision is the walk's.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial

from understudy.core.errors import OutOfTime, ProviderError, Stall
from understudy.core.faults import Fault
from understudy.core.health import Clock
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Attempt, Observer
from understudy.core.walk import RELAY, Step, Steps, Try
from understudy.core.words import in_seconds
from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.fit import fit, needs_work
from understudy.messages.request import Request
from understudy.providers.answer import CutShort
from understudy.providers.base import Call, Described, Patience, Provider, Sized
from understudy.timers import Watchdog, Watches

PATIENCE = Patience()
Called = tuple[Try, Provider, Call, Patience]


@dataclass(frozen=True, slots=True)
class Cast:
    """A parsed chain with everybody it needs. Built once per model, shared by its requests."""

    chain: tuple[Candidate, ...]
    providers: Mapping[str, Provider]
    stage: Stage
    observer: Observer | None = None
    described: Mapping[str, Described] = field(init=False, repr=False)  # those that are
    watches: Watches = field(init=False, repr=False)  # for the waits of all its requests

    def __post_init__(self) -> None:
        # Whether an object follows a protocol takes 15 us to find out: too long for each call.
        told = {name: p for name, p in self.providers.items() if isinstance(p, Described)}
        object.__setattr__(self, "described", told)
        object.__setattr__(self, "watches", Watches(self.stage.clock))

    def call(
        self, step: Try, request: Request, *, stream: bool = False
    ) -> tuple[Provider, Call, Patience]:
        """Whom to call, with what (fitted to that target), and how long to wait."""
        name, model = step.target.provider, step.target.model
        described = self.described.get(name)
        if described is None:
            return self.providers[name], Call(model, request, step.credential), PATIENCE
        fitted = fit(request, described.capabilities(model), stream=stream)
        return self.providers[name], Call(model, fitted, step.credential), described.patience

    async def called(self, step: Try, request: Request, *, stream: bool = False) -> Called:
        """The same; in a thread where pictures have to be changed, for others are not to wait.

        That takes of the caller's time, and of that alone: the target's begins with the call. So
        the step comes back with what is left of its limit.
        """
        if not self.is_heavy(step, request):
            return step, *self.call(step, request, stream=stream)
        clock = self.stage.clock
        began = clock()
        with guard(clock, step, 0.0, "pre_first_byte", self.watches):
            called = await asyncio.to_thread(self.call, step, request, stream=stream)
        if step.limit is not None:
            step = step._replace(limit=max(step.limit - (clock() - began), 0.0))
        return step, *called

    def is_heavy(self, step: Try, request: Request) -> bool:
        described = self.described.get(step.target.provider)
        takes = None if described is None else described.capabilities(step.target.model)
        return takes is not None and needs_work(request, takes)

    def patience(self, step: Try) -> Patience:
        described = self.described.get(step.target.provider)
        return PATIENCE if described is None else described.patience


def capabilities_of(provider: Provider, model: str) -> Capabilities:
    """Everything known of a model, its window included; may be slow the first time."""
    takes = provider.capabilities(model) if isinstance(provider, Described) else ANYTHING
    if takes.context_window is None and isinstance(provider, Sized):
        return replace(takes, context_window=provider.window(model))
    return takes


async def drive(steps: Steps, act: Callable[[Step], Awaitable[object]]) -> object:
    """Run a walk to its end, or to where a stream is under way: then RELAY is returned.

    Cancellation by the caller passes through and closes the walk.
    """
    before = _cancellations()
    try:
        step = next(steps)
        while step is not RELAY:
            try:
                answer = await act(step)
            except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
                await _heed(before, error)
                step = steps.throw(error)
                await _heed(before, error)
            except asyncio.CancelledError as error:
                step = steps.throw(from_below(error))
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value
    except BaseException:
        steps.close()
        raise
    return RELAY


def _cancellations() -> int:
    """How often this task was told to end; what it swallowed before we came does not count."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _heed(before: int, error: Exception) -> None:
    """Leave if the caller is gone, whatever the attempt, or who looks on, made of it."""
    if _cancellations() > before:
        await asyncio.sleep(0)  # here notices who never waited
        raise asyncio.CancelledError from error


def tell(observer: Observer, attempt: Attempt) -> None:
    """Whoever looks on changes nothing; what it raises is the event loop's to report."""
    try:
        observer(attempt)
    except Exception as error:  # noqa: BLE001 - anything
        told = {"message": "an observer broke", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)


def from_below(error: asyncio.CancelledError) -> ProviderError:
    """A cancellation while the caller lives is a transient fault (F7); the caller's passes on."""
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    failure = ended_below()
    failure.__cause__ = error
    return failure


def ended_below() -> ProviderError:
    """An attempt was cancelled, and not by its caller."""
    return ProviderError(Fault.TRANSIENT, message="the attempt was cancelled from below")


def term(step: Try, seconds: float) -> float:
    """Seconds to the first content: the provider's own limit, or the caller's if that is less."""
    theirs = math.inf if step.limit is None else step.limit
    return min(seconds, theirs) if seconds > 0 else theirs


def overdue(step: Try, seconds: float, phase: str = "pre_first_byte") -> Exception:
    """What it means that a target's `term` is over."""
    if step.limit is not None and not 0 < seconds <= step.limit:
        return OutOfTime(f"no time left after {in_seconds(step.limit)}")
    return Stall(phase, step.target.provider, seconds)


def broken_off(seconds: float) -> ProviderError:
    """A plain answer began to come and was not whole in time."""
    message = f"the answer broke off: part of it came, and no more within {in_seconds(seconds)}"
    return ProviderError(Fault.TRANSIENT, message=message, billing="maybe_billed")


def _over(step: Try, seconds: float, phase: str, cut: BaseException | None) -> Exception:
    error = overdue(step, seconds, phase)
    late = isinstance(error, Stall) and phase == "pre_first_byte" and isinstance(cut, CutShort)
    return broken_off(seconds) if late else error


def guard(
    clock: Clock, step: Try, seconds: float, phase: str, watches: Watches
) -> AbstractContextManager[object]:
    """A watchdog over one wait: the provider's own limit, or the caller's if that ends sooner.

    Before the first content the caller's limit is the target's share of the deadline; after it,
    what is left of the deadline itself.
    """
    if phase == "mid_stream":
        step = step._replace(limit=step.deadline - clock())
    limit = term(step, seconds)
    if limit == math.inf:
        return nullcontext()
    return Watchdog(watches.here(), limit, partial(_over, step, seconds, phase))
