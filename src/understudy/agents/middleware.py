"""Code that runs around every route. It watches, and may exchange the envelope; it never vetoes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from understudy.agents.envelope import IntentEnvelope
from understudy.agents.failure import ErrorInfo
from understudy.agents.response import AgentResponse


class Middleware:
    """Three hooks that do nothing; a subclass, or any object, has those it needs.

    What a hook is given is its own copy, and what it raises changes nothing.
    """

    def before_route(self, envelope: IntentEnvelope) -> IntentEnvelope | None:
        """An envelope returned from here is routed instead."""

    def after_route(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        """Agents were asked; this is what the caller gets."""

    def on_error(self, envelope: IntentEnvelope, error: ErrorInfo) -> None:
        """After `after_route`, or instead of it when nobody was asked."""


class Mishap(NamedTuple):
    """Something that a hook, a sink or the recorder raised, and that changed nothing."""

    where: str
    error: Exception


class Hooks:
    """The hooks of all middleware, called in order; keeps the last mishaps for those who look."""

    def __init__(self, middleware: Sequence[object], kept: int = 100) -> None:
        self.before = _all(middleware, "before_route")
        self.after = _all(middleware, "after_route")
        self.error = _all(middleware, "on_error")
        self.mishaps: deque[Mishap] = deque(maxlen=kept)

    def opened(self, envelope: IntentEnvelope) -> IntentEnvelope:
        for hook in self.before:
            changed = self.call("before_route", _on_copies, hook, envelope)
            if isinstance(changed, IntentEnvelope):
                envelope = changed
        return envelope

    def closed(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        if response.decision_path:
            for hook in self.after:
                self.call("after_route", _on_copies, hook, envelope, response)
        if response.error is not None:
            for hook in self.error:
                self.call("on_error", _on_copies, hook, envelope, response.error)

    def call(self, where: str, hook: Callable[..., object], *args: object) -> object:
        """What it returns, or None when it raises."""
        try:
            return hook(*args)
        except Exception as error:  # noqa: BLE001 - whoever watches changes nothing
            self.mishaps.append(Mishap(where, error))
            return None


def _on_copies(
    hook: Callable[..., object], *values: IntentEnvelope | AgentResponse | ErrorInfo
) -> object:
    return hook(*[value.copy() for value in values])


def _all(middleware: Iterable[object], name: str) -> tuple[Callable[..., object], ...]:
    hooks = (getattr(each, name, None) for each in middleware)
    return tuple(hook for hook in hooks if hook is not None)
