"""Code that runs around every route. It may exchange the envelope, but not veto it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from understudy.agents.blocking import is_async
from understudy.agents.envelope import IntentEnvelope
from understudy.agents.failure import ErrorInfo
from understudy.agents.response import AgentResponse


class Middleware:
    """Three hooks that do nothing; a subclass, or any object, has those it needs.

    What a hook is given is its own copy, and what it raises changes nothing. Hooks are plain
    functions: nobody would await them.
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
    """The hooks of all middleware, called in order."""

    def __init__(self, middleware: Sequence[object], mishaps: deque[Mishap]) -> None:
        self.before = _all(middleware, "before_route")
        self.after = _all(middleware, "after_route")
        self.error = _all(middleware, "on_error")
        self._mishaps = mishaps

    def opened(self, envelope: IntentEnvelope) -> IntentEnvelope:
        for hook in self.before:
            changed = self._call("before_route", hook, envelope)
            if isinstance(changed, IntentEnvelope):
                envelope = changed
        return envelope

    def closed(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        if response.decision_path:
            for hook in self.after:
                self._call("after_route", hook, envelope, response)
        if response.error is not None:
            for hook in self.error:
                self._call("on_error", hook, envelope, response.error)

    def _call(
        self,
        where: str,
        hook: Callable[..., object],
        *values: IntentEnvelope | AgentResponse | ErrorInfo,
    ) -> object:
        """What it returns, or None when it raises."""
        try:
            return hook(*[value.copy() for value in values])
        except Exception as error:  # noqa: BLE001 - whoever watches changes nothing
            self._mishaps.append(Mishap(where, error))
            return None


def _all(middleware: Iterable[object], name: str) -> tuple[Callable[..., object], ...]:
    hooks = (getattr(each, name, None) for each in middleware)
    return tuple(plain(name, hook) for hook in hooks if hook is not None)


W = TypeVar("W", bound=Callable[..., object])


def plain(what: str, watcher: W) -> W:
    """Refuses what is async: it would be called, never awaited, and so never run."""
    if is_async(watcher):
        raise TypeError(f"{what}: a plain function is needed, not the async {watcher!r}")
    return watcher
