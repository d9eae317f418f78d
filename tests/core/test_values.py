"""A value that is made faster is the same value."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from understudy.core.target import Attempt
from understudy.core.values import quick
from understudy.messages.request import Request
from understudy.messages.response import Response, Usage


@dataclass(frozen=True)
class Slow:
    """As Python makes it."""

    name: str
    size: int = 3
    notes: list[str] = field(default_factory=list, repr=False)
    doubled: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "doubled", self.name * 2)


@quick
@dataclass(frozen=True)
class Fast(Slow):
    """As we do."""


@pytest.mark.parametrize("given", [("a",), ("a", 4), ("a", 4, ["x"]), ("a", 4, ["x"], "")])
def test_it_is_made_of_the_same_arguments_and_has_the_same_fields(
    given: tuple[object, ...],
) -> None:
    slow, fast = Slow(*given), Fast(*given)  # type: ignore[arg-type]
    assert dataclasses.asdict(fast) == dataclasses.asdict(slow)
    assert repr(fast) == repr(slow).replace("Slow", "Fast")
    names = list(inspect.signature(Slow).parameters)
    assert list(inspect.signature(Fast).parameters) == names


def test_it_cannot_be_changed_and_a_changed_copy_can_be_had() -> None:
    fast = Fast("a", 4)
    with pytest.raises(FrozenInstanceError):
        fast.size = 5  # type: ignore[misc]
    assert replace(fast, size=5) == Fast("a", 5)
    assert hash(replace(Usage(1), output=2)) == hash(Usage(1, 2))


def test_two_never_share_what_is_made_for_each() -> None:
    assert Fast("a").notes is not Fast("a").notes


def test_a_missing_or_unknown_argument_is_named() -> None:
    with pytest.raises(TypeError, match=r"Fast\.__init__\(\) missing .* 'name'"):
        Fast()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nme"):
        Fast("a", nme="b")  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Attempt, Usage, Request, Response])
def test_public_values_are_frozen_dataclasses(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    needed = ("p/m", "ok") if kind is Attempt else ()
    made = kind(*needed)
    with pytest.raises(FrozenInstanceError):
        setattr(made, dataclasses.fields(kind)[0].name, None)
    assert replace(made) == made
