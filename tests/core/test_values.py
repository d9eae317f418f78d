"""A value that is made faster is the same value."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from understudy.core.target import Attempt
from understudy.core.values import quick
from understudy.messages.parts import Text
from understudy.messages.request import Message, Request
from understudy.messages.response import Response, Usage


def value(**options: bool) -> Any:
    """A value as Python makes it."""

    @dataclass(frozen=True, **options)
    class Value:
        name: str
        size: int = 3
        notes: list[str] = field(default_factory=list, repr=False)
        doubled: str = ""

        def __post_init__(self) -> None:
            object.__setattr__(self, "doubled", self.name * 2)

    return Value


Slow, Fast, Slotted = value(), quick(value()), quick(value(slots=True))
both = pytest.mark.parametrize("kind", [Fast, Slotted], ids=["fast", "slotted"])


@both
@pytest.mark.parametrize("given", [("a",), ("a", 4), ("a", 4, ["x"]), ("a", 4, ["x"], "")])
def test_it_is_made_of_the_same_arguments_and_has_the_same_fields(
    kind: Any, given: tuple[object, ...]
) -> None:
    slow, fast = Slow(*given), kind(*given)
    assert dataclasses.asdict(fast) == dataclasses.asdict(slow)
    assert repr(fast) == repr(slow)
    names = list(inspect.signature(Slow).parameters)
    assert list(inspect.signature(kind).parameters) == names


@both
def test_it_cannot_be_changed_and_a_changed_copy_can_be_had(kind: Any) -> None:
    fast = kind("a", 4)
    with pytest.raises(FrozenInstanceError):
        fast.size = 5
    assert replace(fast, size=5) == kind("a", 5)
    assert hash(replace(Usage(1), output=2)) == hash(Usage(1, 2))


@both
def test_two_never_share_what_is_made_for_each(kind: Any) -> None:
    assert kind("a").notes is not kind("a").notes


@both
def test_a_missing_or_unknown_argument_is_named(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"Value\.__init__\(\) missing .* 'name'"):
        kind()
    with pytest.raises(TypeError, match="nme"):
        kind("a", nme="b")


NEEDED = {Attempt: ("p/m", "ok"), Text: ("words",), Message: ("user",)}


@pytest.mark.parametrize("kind", [Attempt, Usage, Request, Response, Text, Message])
def test_public_values_are_frozen_dataclasses(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    made = kind(*NEEDED.get(kind, ()))
    with pytest.raises(FrozenInstanceError):
        setattr(made, dataclasses.fields(kind)[0].name, None)
    assert replace(made) == made
