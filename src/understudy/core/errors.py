"""The exception tree.

    UnderstudyError
    ├── SpecError                a chain text that cannot be read
    │   ├── EmptySpec
    │   ├── AliasCycle
    │   ├── UnknownProvider
    │   └── UnknownAlias
    ├── InvalidDSN               an LLM_* variable that cannot be read
    ├── InvalidRequest           a request that no target could answer
    ├── Stall                    our watchdog fired; knows its phase
    ├── OutOfTime                the caller's own deadline passed; nobody is blamed
    ├── ProviderError            one failed attempt: fault, target, status_code, retry_after
    ├── StructuredError          an answer that is not of the type asked for (`generate_as`)
    └── ChainExhausted           an ExceptionGroup: one error per failed or skipped target

A message names the thing, shows what was found and says what would be right. No secrets.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

from understudy.core.faults import Fault
from understudy.core.target import Attempt, Target

E = TypeVar("E", bound=BaseException)

# Our own machine is out of files, buffers or memory, or without a network.
OURS = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ENETDOWN, errno.ENETUNREACH)
)
FROM_HERE = "cannot be reached from here"  # said of a target then
LINKS = 8  # of a chain of causes that are looked at: it may lead back to where it began


class UnderstudyError(Exception):
    """Everything this library raises on purpose."""


class SpecError(UnderstudyError, ValueError):
    """A chain text that cannot be read."""


class EmptySpec(SpecError):
    """Nothing but commas and blanks."""


class AliasCycle(SpecError):
    """An alias that leads back to itself."""


class UnknownProvider(SpecError):
    """A provider that is neither registered nor in the environment."""


class UnknownAlias(SpecError):
    """A bare word that no alias and no resolver knows."""


class InvalidDSN(UnderstudyError, ValueError):
    """An `LLM_*` variable that cannot be read. Never quotes the token."""


class InvalidRequest(UnderstudyError, ValueError):
    """A request that is wrong in itself, whoever the target; says the path of the wrong field."""


class Stall(UnderstudyError, TimeoutError):
    """Our watchdog fired: no progress for too long."""

    def __init__(self, phase: str, provider: str, seconds: float) -> None:
        self.phase = phase  # "pre_first_byte" or "mid_stream"
        self._given = (phase, provider, seconds)
        super().__init__(f'upstream stall ({phase}) on provider "{provider}" after {seconds:g}s')

    def __reduce__(self) -> tuple[object, ...]:
        """To another process, whole."""
        return Stall, self._given


class OutOfTime(UnderstudyError, TimeoutError):
    """The caller's deadline, or a target's share of it, passed. No target is to blame."""


class StructuredError(UnderstudyError):
    """An answer came and is not of the type asked for."""

    def __init__(self, message: str, model: str = "", said: str = "") -> None:
        super().__init__(message)
        self.model = model  # who served
        self.said = said  # what came back, in full


class ProviderError(UnderstudyError):
    """One failed attempt at one target. The original error is on `__cause__`."""

    def __init__(
        self,
        fault: Fault = Fault.UNKNOWN,
        target: str | Target = "",
        status_code: int | None = None,
        retry_after: float | None = None,
        *,
        message: str = "",
        billing: str = "",
    ) -> None:
        super().__init__(fault, target, status_code, retry_after)
        self.fault = fault if type(fault) is Fault else Fault(fault)
        # `provider/model`, or just `provider`; whoever has a `Target` may give that
        self.target = target if type(target) is str else str(target)
        self.status_code = status_code
        self.retry_after = retry_after
        self.message = message  # what the provider said, cleared of secrets
        self.billing = billing  # "not_sent", "refused", "maybe_billed" or "" when unknown
        self.retry_source = "" if retry_after is None else "header"  # or "body"
        self.dialect = ""  # of `body`
        self.body = b""  # the provider's own error body, cleared of secrets, for relaying

    def __str__(self) -> str:
        provider = self.target.partition("/")[0] or "?"
        head = f"failover[{provider}/{self.fault}]: status={self.status_code or 0}"
        detail = self.message or text_of(self.__cause__)
        return f"{head}: {detail}" if detail else head

    def __reduce__(self) -> tuple[object, ...]:
        """To another process, whole: causes do not travel, so their words do."""
        told = {**vars(self), "message": self.message or text_of(self.__cause__)}
        return ProviderError, self.args, told

    def at(self, target: str) -> ProviderError:
        """This error, told of a target: itself, or a copy with the same cause."""
        if self.target == target:
            return self
        told = ProviderError(
            self.fault,
            target,
            self.status_code,
            self.retry_after,
            message=self.message,
            billing=self.billing,
        )
        told.retry_source = self.retry_source
        told.dialect, told.body = self.dialect, self.body
        told.__cause__ = self.__cause__
        return told


class ChainExhausted(UnderstudyError, ExceptionGroup[ProviderError]):
    """No target could answer: one error per failed or skipped target, and the whole story.

    `except*` finds the wrapped causes too, not only `ProviderError`: see `split`.
    """

    attempts: tuple[Attempt, ...]
    retry_after: float | None  # seconds until the soonest re-admission, if any is known

    def __new__(
        cls,
        errors: Sequence[ProviderError],
        attempts: Sequence[Attempt] = (),
        retry_after: float | None = None,
    ) -> Self:
        reasons = "; ".join(f"{error.target}: {reason_of(error)}" for error in errors)
        self = super().__new__(cls, f"no target could answer: {reasons}", list(errors))
        self.attempts = tuple(attempts)
        self.retry_after = retry_after
        return self

    def __init__(self, *args: object) -> None:
        """Nothing: an exception group takes its fields in `__new__`."""

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """To another process, whole."""
        return ChainExhausted, (list(self.exceptions), self.attempts, self.retry_after)

    def derive(self, excs: Sequence[ProviderError]) -> ChainExhausted:  # type: ignore[override]
        return ChainExhausted(excs, self.attempts, self.retry_after)

    # The built-in's overloads cannot be repeated here without repeating its type variables.
    def split(self, condition):  # type: ignore[no-untyped-def]
        """Like the built-in, but a type also matches an error by what caused it."""
        return super().split(_through_causes(condition))

    def subgroup(self, condition):  # type: ignore[no-untyped-def]
        return super().subgroup(_through_causes(condition))


def reason_of(error: BaseException) -> str:
    """Why one target did not answer, in the words used everywhere."""
    if not isinstance(error, ProviderError):
        return text_of(error)
    if error.fault is Fault.UNKNOWN and error.billing == "not_sent":
        return error.message  # passed over by an operator's word, say: no fault to name
    status = f" ({error.status_code})" if error.status_code else ""
    detail = error.message or text_of(error.__cause__)
    return f"{error.fault}{status}: {detail}" if detail else f"{error.fault}{status}"


def bare(error: E) -> E:
    """The same without tracebacks, its causes too.

    A traceback holds the frames it went through, and with them the request and its bytes. An
    error that those frames know in turn would keep all of it alive until the collector comes.
    """
    for link in _links(error):
        link.__traceback__ = None
    return error


def is_ours(error: BaseException) -> bool:
    """Was it our own machine that failed? Then no target is to blame."""
    return any(isinstance(link, OSError) and link.errno in OURS for link in _links(error))


def _links(error: BaseException) -> Iterator[BaseException]:
    """The error, what caused it, and so on."""
    link: BaseException | None = error
    for _ in range(LINKS):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def untied(error: E) -> E:
    """Without the frame that caught it in its traceback: the two would be a cycle."""
    trace = error.__traceback__
    return error.with_traceback(None if trace is None else trace.tb_next)


def text_of(error: BaseException | None) -> str:
    """An error's own words, or its type when it has none."""
    return "" if error is None else str(error) or type(error).__name__


Condition = type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], bool]


def _through_causes(condition: Condition) -> Callable[[BaseException], bool]:
    if not isinstance(condition, type | tuple):
        return condition

    def matches(error: BaseException) -> bool:
        link: BaseException | None = error
        while link is not None and not isinstance(link, condition):
            link = link.__cause__
        return link is not None

    return matches
