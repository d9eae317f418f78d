"""A provider reached over HTTP: a dialect, an address, credentials and a transport.

Everything that comes back wrong becomes a `ProviderError` here, with its fault, the target's own
words cleared of secrets, and a billing label.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack
from urllib.parse import urlsplit

from understudy.core.classify import classify
from understudy.core.errors import ProviderError
from understudy.core.faults import Fault, Verdict
from understudy.dialects.base import Dialect, Garbled, Truncated, WireError
from understudy.dialects.json_access import encode
from understudy.dialects.table import dialect_named
from understudy.messages.bends import Bends, Undoing
from understudy.messages.capabilities import Capabilities
from understudy.messages.response import BEAT, Beat, Event, Response, is_content
from understudy.providers.base import Call, Patience
from understudy.providers.credentials import Credential, Secrets, credentials
from understudy.providers.facts import facts, limits
from understudy.providers.pool import Pool
from understudy.providers.route import transport_for
from understudy.providers.transport import (
    VALUE,
    Answer,
    Limits,
    Origin,
    Outgoing,
    Transport,
    render_head,
)
from understudy.providers.trouble import cut_off
from understudy.providers.wire import Connection, Waiter

SNIPPET = 200  # characters of a provider's own words that are kept
SEEN_MOST = 64  # refusals that are known again
SEEN_BYTES = 4096  # of body; a longer one is read anew
# In headers that a verdict may rest on.
TELLING = (b"retry", b"reset", b"limit", b"\nx-am", b"\nx-ms-")


class Seconds(TypedDict, total=False):
    """Limits of time, under the names they have in a gateway's file."""

    connect_timeout: float
    first_byte_timeout: float
    idle_timeout: float
    response_timeout: float


@dataclass(frozen=True, slots=True)
class Settings:
    """How to treat one provider; every field has a default that suits most."""

    auth: str = ""  # bearer | x-api-key | x-goog-api-key | api-key | none; "" by dialect
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold keys
    patience: Patience = field(default_factory=Patience)
    limits: Limits = field(default_factory=Limits)
    quirks: frozenset[str] = frozenset()
    # What is known better than by the tables: fields of Capabilities, by model id.
    capabilities: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    missing: str = ""  # what to say when it cannot be called: no key, no address
    vendor: str = ""  # whose habits to expect; "" means those of its name
    # Asked at each call while the key is what is missing: it may have been set since.
    key_now: Callable[[], str] | None = field(default=None, repr=False)
    root: str = ""  # where its interface is, if the base URL has no path
    transport: Transport | None = None  # a pool of its own if none is given
    # Epoch seconds: for delays told as a point in time by an answer without a date of its own.
    wall: Callable[[], float] = time.time  # noqa: TID251 - what providers mean

    def within(self, seconds: Seconds) -> Settings:
        """The same with other limits of time."""
        if unknown := sorted(set(seconds) - Seconds.__annotations__.keys()):
            known = ", ".join(Seconds.__annotations__)
            raise TypeError(f"unknown option {unknown[0]!r} of a provider; of time it has {known}")
        patience = Patience(
            seconds.get("first_byte_timeout", self.patience.first_byte),
            seconds.get("idle_timeout", self.patience.idle),
            seconds.get("response_timeout", self.patience.response),
        )
        connect = seconds.get("connect_timeout", self.limits.connect)
        return replace(self, patience=patience, limits=replace(self.limits, connect=connect))


AUTH: dict[str, Callable[[str], dict[str, str]]] = {
    "bearer": lambda key: {"authorization": f"Bearer {key}"},
    "x-api-key": lambda key: {"x-api-key": key},
    "x-goog-api-key": lambda key: {"x-goog-api-key": key},
    "api-key": lambda key: {"api-key": key},
    "none": lambda key: {},
}
AUTH_OF_DIALECT = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
HEADERS_OF_DIALECT = {"anthropic": {"anthropic-version": "2023-06-01"}}


def joined(prefix: str, path: str) -> str:
    """A dialect's path below a base URL. Many write its first step there already: `…/v1beta`."""
    step = "/" + path.split("/")[1]
    return (prefix[: -len(step)] if prefix.endswith(step) else prefix) + path


def plain_url(url: str) -> str:
    """An address for people: what stands before an `@` may be half of a token."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}…@{rest.rpartition('@')[2]}" if "@" in rest else url


def transport_to(base_url: str, env: Mapping[str, str]) -> Transport | None:
    """Through the proxy the environment names for this address, if it names one."""
    if not base_url:
        return None
    return transport_for(env, Origin.from_url(base_url), Pool())


def vendor_of(provider: object, name: str) -> str:
    """Whose habits and prices it has; its own name if nothing else is known."""
    return (isinstance(provider, HttpProvider) and provider.settings.vendor) or name


class HttpProvider:
    """Speaks one dialect to one address. Safe to share between event loops."""

    def __init__(
        self,
        name: str,
        *,
        dialect: str = "openai",
        base_url: str,
        api_key: str = "",
        api_keys: Sequence[str] = (),
        settings: Settings = Settings(),  # noqa: B008 - frozen
        **seconds: Unpack[Seconds],
    ) -> None:
        settings = settings.within(seconds) if seconds else settings
        self.name = name
        self.base_url = base_url.rstrip("/")
        self.dialect: Dialect = dialect_named(dialect, settings.quirks)
        self.settings = settings
        self.patience = settings.patience
        self._hold([*([api_key] if api_key else []), *api_keys])
        self._transport: Transport = settings.transport or Pool()
        self._pool = self._transport if isinstance(self._transport, Pool) else None
        self._origin = None if settings.missing else Origin.from_url(self.base_url)
        self._prefix = urlsplit(self.base_url).path.rstrip("/") or settings.root
        self._heads: dict[tuple[str, str], bytes] = {}
        self._vendor = settings.vendor or name
        self._takes: dict[str, Capabilities] = {}
        self._refusals: dict[tuple[int, bool, bytes], tuple[Verdict, str]] = {}

    def __repr__(self) -> str:
        keys = ", ".join(str(c) for c in self._credentials)
        return f"<HttpProvider {self.name} {self.dialect.name} {plain_url(self.base_url)} {keys}>"

    def _hold(self, keys: Sequence[str]) -> None:
        self._credentials = credentials(keys)
        self.credentials = tuple(c.label for c in self._credentials)
        self._by_label = {c.label: c for c in self._credentials}
        given = [c.secret for c in self._credentials] + list(self.settings.headers.values())
        self._secrets = Secrets(given)

    def capabilities(self, model: str) -> Capabilities:
        known = self._takes.get(model)
        if known is None:
            known = limits(self._vendor, model, self.settings.capabilities.get(model, {}))
            if len(self._takes) > 1024:
                self._takes.clear()
            self._takes[model] = known
        return known

    def window(self, model: str) -> int | None:
        return facts(self._vendor, model).context_window

    async def generate(self, call: Call) -> Response:
        answer = await self._send(call, stream=False)
        try:
            body = await answer.read()
            if answer.status >= 300:
                raise self.refused(answer, body, stream=False)
            bends = self.dialect.bends(call.request, call.model)
            return bends.undone(self.dialect.read_response(body))
        except (WireError, Garbled) as error:
            raise self.not_an_answer(error, stream=False) from error
        finally:
            answer.close()

    async def stream(self, call: Call) -> AsyncGenerator[Event | Beat, None]:
        answer = await self._send(call, stream=True)
        begun = False
        try:
            if answer.status >= 300:
                raise self.refused(answer, await answer.read(), stream=True)
            bends = self.dialect.bends(call.request, call.model)
            async for event in self._events(answer, bends):
                begun = begun or is_content(event)
                yield event
        except (WireError, Garbled, Truncated) as error:
            raise self.not_an_answer(error, stream=True, begun=begun) from error
        except ProviderError as error:
            if begun and error.status_code is None:
                cut_off(error)
            raise
        finally:
            answer.close()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def send(self, path: str, body: bytes, credential: str) -> Answer:
        """Post a body as it is; the answer's head is in hand, whatever it says."""
        return await self._transport.send(
            self._outgoing(path, body, credential), self.settings.limits
        )

    def at_once(
        self, path: str, body: bytes, credential: str, waiter: Waiter
    ) -> Connection | None:
        """The same without awaiting anything, if a kept connection is free; see `Pool.at_once`."""
        if self._pool is None:
            return None
        outgoing = self._outgoing(path, body, credential)
        return self._pool.at_once(outgoing, self.settings.limits, waiter)

    async def _events(self, answer: Answer, bends: Bends) -> AsyncGenerator[Event | Beat, None]:
        reader, undoing = self.dialect.reader(), Undoing(bends)
        beats = 0
        async for chunk in answer:
            events = reader.feed(chunk)
            for event in undoing.events(events):
                yield event
            if reader.beats > beats and not events:
                yield BEAT
            beats = reader.beats
            if reader.failure is not None:
                raise reader.failure
            if reader.done:
                answer.finish()
                return
        for event in undoing.events(reader.end()):
            yield event
        if reader.failure is not None:
            raise reader.failure

    async def _send(self, call: Call, *, stream: bool) -> Answer:
        body = encode(self.dialect.write_request(call.request, call.model, stream))
        return await self.send(self.dialect.path(call.model, stream), body, call.credential)

    def _outgoing(self, path: str, body: bytes, credential: str) -> Outgoing:
        origin = self._origin or self._found()
        head = self._heads.get((path, credential)) or self._head(path, credential)
        return Outgoing(origin, head, body)

    def _found(self) -> Origin:
        """The address of a provider that could not be called, if its key has been set since."""
        settings = self.settings
        key = settings.key_now() if settings.key_now is not None else ""
        if not key:
            raise ProviderError(
                Fault.AUTH, status_code=401, message=settings.missing, billing="not_sent"
            )
        self._hold([key])
        self.settings = replace(settings, missing="", key_now=None)
        self._origin = Origin.from_url(self.base_url)  # last: others look at it first
        return self._origin

    def _head(self, path: str, label: str) -> bytes:
        """Rendered once per path and credential; few of both."""
        assert self._origin is not None
        whole, headers = joined(self._prefix, path), self._headers(self._by_label[label])
        head = render_head("POST", self._origin, whole, headers)
        if len(self._heads) > 256:
            self._heads.clear()
        self._heads[path, label] = head
        return head

    def _headers(self, credential: Credential) -> dict[str, str]:
        name = self.dialect.name
        auth = self.settings.auth or AUTH_OF_DIALECT.get(name, "bearer")
        key = AUTH[auth](credential.secret) if credential.secret else {}
        if not all(map(VALUE.fullmatch, key.values())):
            # The key is wrong, not the request: another one, or another target, may be right.
            message = (
                f"key {credential.label!r} holds a character that no header can; copy it anew"
            )
            raise ProviderError(Fault.AUTH, status_code=401, message=message, billing="not_sent")
        return {
            "content-type": "application/json",
            "accept": "*/*",
            "accept-encoding": "identity",
            **HEADERS_OF_DIALECT.get(name, {}),
            **key,
            **self.settings.headers,
        }

    def refused(
        self, answer: Answer, body: bytes, *, stream: bool, target: str = ""
    ) -> ProviderError:
        """An HTTP error status, classified from everything it said."""
        verdict, said = self._seen(answer, body, stream)
        error = ProviderError(
            verdict.fault,
            target or self.name,
            answer.status,
            verdict.retry_after,
            message=said,
            billing="refused",
        )
        error.retry_source = verdict.source
        error.dialect, error.body = self.dialect.name, self.clear_body(body)
        return error

    def _seen(self, answer: Answer, body: bytes, stream: bool) -> tuple[Verdict, str]:
        """What a refusal means. In an outage the same one comes again and again: read it once."""
        key = (answer.status, stream, body)
        known = self._refusals.get(key)
        if known is not None and not answer.mentions(TELLING):
            return known
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in answer.headers}
        verdict = classify(
            status=answer.status,
            headers=headers,
            body=body,
            provider=self._vendor,
            stream=stream,
            now=self.settings.wall(),
        )
        said = self.dialect.read_error(body) or body[:SNIPPET].decode("utf-8", "replace")
        read = verdict, self._clear(said)
        # A delay may be counted from the answer's own date, so it is not the same twice.
        if (
            verdict.retry_after is None
            and len(body) <= SEEN_BYTES
            and not answer.mentions(TELLING)
        ):
            if len(self._refusals) >= SEEN_MOST:
                self._refusals.clear()
            self._refusals[key] = read
        return read

    def not_an_answer(
        self, error: WireError | Garbled | Truncated, *, stream: bool, begun: bool = False
    ) -> ProviderError:
        """A 200 that is no answer: an error inside it, nonsense, or half of one."""
        if isinstance(error, WireError):
            verdict = classify(
                status=error.status or 200,
                body=error.body,
                provider=self._vendor,
                stream=stream,
                now=self.settings.wall(),
            )
            said = self.dialect.read_error(error.body) or str(error)
            fault, after = verdict.fault, verdict.retry_after
        else:
            fault = Fault.STALL_MID_STREAM if begun else Fault.TRANSIENT
            # Without the excerpt behind the colon: it may end in the middle of a key.
            said, after = str(error).partition(":")[0], None
        return ProviderError(
            fault, self.name, 200, after, message=self._clear(said), billing="maybe_billed"
        )

    def clear_body(self, body: bytes) -> bytes:
        return self._secrets.out_of_bytes(body)

    def _clear(self, said: str) -> str:
        return self._secrets.out_of(" ".join(said.split()))[:SNIPPET]
