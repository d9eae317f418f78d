"""What an agent answers: a success or a failure, never something in between."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from understudy.agents.envelope import VERSION
from understudy.agents.failure import ErrorInfo
from understudy.agents.payload import Copy, copied, handed


class AgentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. From a router it also names the agent, the trace, the time and the path.

    JSON-like values in it are the caller's to edit. Others, a stream or a session, are the very
    objects that the agent gave: a copy of them would be dead, and some cannot be copied at all.
    """

    version: str = VERSION
    status: str = "success"  # or "error"; an error is there exactly when this says so
    payload: object = None
    error: ErrorInfo | None = None
    metadata: dict[str, object] = msgspec.field(default_factory=dict)
    decision_path: tuple[str, ...] = ()  # who was tried, in order

    def __post_init__(self) -> None:
        error = self.error
        right = "success" if error is None else "error"
        if self.status != right:
            has = "no error" if error is None else "an error"
            raise ValueError(f"status {self.status!r} contradicts {has}; it must be {right!r}")
        if error is not None:
            if not isinstance(error, ErrorInfo):
                raise TypeError(f"an error is an ErrorInfo, not {type(error).__name__}")
            if self.payload is not None:
                raise ValueError("a failure carries no payload; put it into the error's details")
        if type(self.metadata) is not dict:
            raise TypeError(f"metadata is a dict, not {type(self.metadata).__name__}")

    @classmethod
    def success(
        cls, payload: object = None, *, metadata: Mapping[str, object] | None = None
    ) -> AgentResponse:
        return cls(payload=payload, metadata=dict(metadata or ()))

    @classmethod
    def failure(
        cls, error: ErrorInfo, *, metadata: Mapping[str, object] | None = None
    ) -> AgentResponse:
        return cls(status="error", error=error, metadata=dict(metadata or ()))

    @property
    def ok(self) -> bool:
        return self.error is None

    def copy(self, by: Copy = copied) -> AgentResponse:
        """The same answer for somebody who might edit it. `by` says how its values are copied."""
        return replace(
            self,
            payload=by(self.payload),
            error=None if self.error is None else self.error.copy(by),
            metadata={name: by(value) for name, value in self.metadata.items()},
        )

    def given(self) -> AgentResponse:
        """The same answer for its caller. An error is passed on as it is (contract A4)."""
        said = {name: handed(value) for name, value in self.metadata.items()}
        return replace(self, payload=handed(self.payload), metadata=said)

    def told(self, metadata: dict[str, object], path: tuple[str, ...]) -> AgentResponse:
        """The same answer with what the router knows; what the agent said itself is kept."""
        if self.metadata:
            metadata = {**metadata, **self.metadata}
        return replace(self, metadata=metadata, decision_path=path)
