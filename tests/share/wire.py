"""Processes that share over a wire which keeps, loses, repeats and reorders what it is given."""

from __future__ import annotations

from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass

from understudy.core.health import Cooldown, HealthTracker
from understudy.share.base import Receive
from understudy.share.message import Message, encode
from understudy.share.sharing import Sharing
from understudy.testing import ManualClock

HELLO = encode(Message(kind="hello", origin="", stamp=0))


@dataclass(frozen=True)
class Letter:
    """A message under way to one receiver."""

    to: int
    data: bytes
    at: float  # true time


class Wire:
    """What is under way."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.ends: dict[int, End] = {}
        self.under_way: list[Letter] = []

    def put(self, sender: int, data: bytes) -> None:
        others = (number for number in self.ends if number != sender)
        self.under_way += [Letter(number, data, self.clock()) for number in others]

    def deliver(self, letter: Letter) -> None:
        self.ends[letter.to].receive(letter.data)

    def settle(self) -> None:
        """Deliver everything, in order, what that leads to as well."""
        for _ in range(10_000):
            if not self.under_way:
                return
            self.deliver(self.under_way.pop(0))
        raise AssertionError("they never came to an end")


class End:
    """A `Link`."""

    def __init__(self, wire: Wire, number: int) -> None:
        self._wire = wire
        self._number = number
        self.receive: Receive = lambda data: None

    async def start(self, receive: Receive) -> None:
        self.receive = receive
        self._wire.ends[self._number] = self

    def send(self, message: bytes) -> None:
        self._wire.put(self._number, message)

    async def close(self) -> None:
        del self._wire.ends[self._number]


class Host:
    """A process with a clock that is off by `skew` seconds."""

    def __init__(self, wire: Wire, number: int, skew: float, **cooldown: float) -> None:
        clock = wire.clock
        self.skew = skew
        self.end = End(wire, number)
        self.health = HealthTracker(
            Cooldown(**cooldown),  # type: ignore[arg-type]
            clock=lambda: clock() + skew,
        )
        self.sharing = Sharing(self.health, [self.end], f"gw-{number}")
        done(self.sharing.start())

    def now(self) -> float:
        return self.health.clock()

    def until(self, key: str) -> float:
        """The end of its bench in true time; the past if there is none."""
        bench = self.health.standing(key)
        return float("-inf") if bench is None else bench.until - self.skew

    def returns(self) -> None:
        """Its link was cut, and is whole again."""
        self.end.receive(HELLO)


def done(work: Coroutine[object, object, None]) -> None:
    """Nothing in it waits, so no loop is needed."""
    with suppress(StopIteration):
        work.send(None)


def hosts(number: int = 3, **cooldown: float) -> tuple[Wire, list[Host]]:
    """Processes whose clocks are minutes apart."""
    wire = Wire(ManualClock())
    skews = (0.0, 217.0, 5000.0, -90.0)
    found = [Host(wire, n, skews[n], **cooldown) for n in range(number)]
    wire.settle()
    return wire, found
