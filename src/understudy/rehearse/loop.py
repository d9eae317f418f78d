"""Many walks on a clock that jumps from event to event. Knows no targets: who plays on it does.

Every request is a walk that waits, suspended, in a heap of what will be told to it next.
Simulator and replay are this loop; they differ in who answers a `Try`, and in what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Generic, TypeVar

from understudy.core.errors import ChainExhausted, ProviderError
from understudy.core.walk import COMMITTED, ENOUGH, Step, Steps, Try, Wait
from understudy.rehearse.fate import ANSWER
from understudy.rehearse.flight import Flying

LEAVE = object()  # the caller has had enough
GO_ON = object()  # it has waited long enough
F = TypeVar("F", bound=Flying)


class Loop(Generic[F]):
    """The heap, the clock, and the telling. Subclasses answer `_try` and note how things end."""

    watched = False  # is `_notice` to be called

    def __init__(self) -> None:
        self._now = [0.0]
        # A C function: the walk asks for the time several times a request.
        self.clock: Callable[[], float] = partial(self._now.__getitem__, 0)
        self._heap: list[tuple[float, int, F, object]] = []  # when, which first, whose, what
        self._count = 0  # orders events of the same moment

    def play(self, arrivals: Iterable[float], arrive: Callable[[float], None]) -> None:
        """To the end of the last request. What falls due at an arrival's moment comes before."""
        heap, settle = self._heap, self._settle
        for arrival in arrivals:
            while heap and heap[0][0] <= arrival:
                settle(heappop(heap))
            arrive(arrival)
        while heap:
            settle(heappop(heap))

    def _launch(self, flight: F, steps: Steps) -> None:
        flight.steps = steps
        try:
            step = next(steps)
        except (ProviderError, ChainExhausted) as error:
            self._end(flight, "failed", error)
        else:
            self._act(flight, step)

    def _act(self, flight: F, step: Step) -> None:
        """What the walk wants done, put on the heap as what will come of it."""
        if isinstance(step, Try):
            self._try(flight, step, self._now[0])
        elif isinstance(step, Wait):
            at = self._woken(flight, step)
            self._push(at, flight, GO_ON if at > self._now[0] else ENOUGH)
        # else RELAY: the end of the stream is on its way already

    def _push(self, at: float, flight: F, told: object) -> None:
        self._count += 1
        heappush(self._heap, (at, self._count, flight, told))

    def _settle(self, event: tuple[float, int, F, object]) -> None:
        """Tell a walk what came of its last step."""
        at, _, flight, told = event
        if flight.over:
            return  # its caller has left
        self._now[0] = at
        if self.watched:
            self._notice(flight, told, at)
        if told is LEAVE:
            return self._left(flight)
        steps = flight.steps
        assert steps is not None
        try:
            step = steps.send(told) if told is ANSWER else self._tell(flight, steps, told)
        except StopIteration:
            self._answered(flight, at)
        except (ProviderError, ChainExhausted) as error:
            self._end(flight, "failed" if flight.committed < 0.0 else "broken", error)
        else:
            self._act(flight, step)
        return None

    def _tell(self, flight: F, steps: Steps, told: object) -> Step:
        """Tell it anything but a plain answer."""
        if told is COMMITTED:
            flight.committed = self._now[0]
        elif isinstance(told, Exception):
            return steps.throw(told)
        return steps.send(told)

    def _woken(self, flight: F, step: Wait) -> float:
        """When a wait ends."""
        return self._now[0] + step.seconds

    # -- for subclasses -----------------------------------------------------------------------

    def _try(self, flight: F, step: Try, now: float) -> None:
        """Put on the heap what becomes of this attempt."""
        raise NotImplementedError

    def _answered(self, flight: F, now: float) -> None:
        raise NotImplementedError

    def _end(self, flight: F, outcome: str, error: Exception | None) -> None:
        """It ended otherwise than well."""
        raise NotImplementedError

    def _left(self, flight: F) -> None:
        raise NotImplementedError

    def _notice(self, flight: F, told: object, at: float) -> None:
        """Somebody looks on."""
