"""What a provider is: the thing that does I/O. Two methods; what it can do is data about it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from understudy.messages.capabilities import Capabilities
from understudy.messages.request import Request
from understudy.messages.response import Beat, Event, Response


@dataclass(frozen=True, slots=True)
class Call:
    """One call as a provider gets it."""

    model: str
    request: Request
    credential: str = "default"  # label of the credential to use


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a provider, in seconds. 0 or less means without limit."""

    first_byte: float = 15.0  # streams: connect, headers and the wait for the first content
    idle: float = 60.0  # streams: silence after the first content
    response: float = 120.0  # plain requests: the whole answer


@runtime_checkable
class Provider(Protocol):
    """Answers calls. Raises `ProviderError`, or anything else, which is then classified.

    A stream is an async generator of events, with beats where a tool call takes long to come;
    closing it must close its connection.
    """

    name: str

    async def generate(self, call: Call) -> Response: ...

    def stream(self, call: Call) -> AsyncGenerator[Event | Beat, None]: ...


@runtime_checkable
class Described(Protocol):
    """What a provider may tell of itself; one that does not is taken to be able to do anything."""

    credentials: tuple[str, ...]  # labels, in order of preference
    patience: Patience

    def capabilities(self, model: str) -> Capabilities:
        """Asked at every attempt: must be quick."""


@runtime_checkable
class Closable(Protocol):
    """A provider with connections of its own."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Sized(Protocol):
    """A provider that can find out a model's window, which may take a while; rarely asked."""

    def window(self, model: str) -> int | None: ...
