"""One client request over one chain: bytes where both sides speak alike, else translated.

Drives the walk like the library does; what differs is only what an attempt is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex

import msgspec

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Step, Try, Wait, walk
from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect, Garbled, StreamWriter, WireError
from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import OpenAIChat, wants_usage
from understudy.dialects.openai_responses import OpenAIResponses
from understudy.driver import PATIENCE, Cast, drive, guard
from understudy.gateway.carriers import Carrier, EventCarrier, RawCarrier, Watch
from understudy.gateway.glance import usage_of
from understudy.gateway.http import Reply
from understudy.gateway.refusals import Refusal, of_error
from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.fit import fit
from understudy.messages.request import Request
from understudy.messages.response import Usage
from understudy.providers.base import Call, Patience, Provider
from understudy.providers.http import HttpProvider
from understudy.timers import sleep

SHALLOW = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENCODER = msgspec.json.Encoder()
ID_PREFIXES = {"openai": "chatcmpl-", "responses": "resp_", "anthropic": "msg_"}


@dataclass(frozen=True, slots=True)
class Where:
    """How a surface carries things."""

    in_body: bool = True  # the model's name; Gemini has it in the URL
    relayable: bool = True  # bytes of the same dialect may go through as they are


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client wants, read only as far as routing needs."""

    dialect: Dialect
    model: str
    stream: bool
    body: bytes
    where: Where = Where()


class Exchange:
    """One request being answered."""

    def __init__(
        self, ask: Ask, cast: Cast, deadline: float, observe: Callable[[Attempt], None]
    ) -> None:
        self.ask = ask
        self.cast = cast
        self.story: list[Attempt] = []
        self.usage: Usage | None = None
        self._observe = observe
        self._steps = walk(cast.chain, cast.stage, deadline=deadline, observe=self._note)
        self._neutral: Request | None = None
        self._shallow: dict[str, msgspec.Raw] | None = None
        self._carrier: Carrier | None = None
        self._step: Try | None = None

    async def plain(self) -> bytes:
        """The whole answer, in the client's dialect."""
        body = await drive(self._steps, self._answer)
        assert isinstance(body, bytes)
        return body

    async def streamed(self, reply: Reply, headers: Callable[[], bytes]) -> Refusal | None:
        """Stream to the client; what went wrong after the first content, if anything did."""
        try:
            await drive(self._steps, self._open)
            carrier, step = self._carrier, self._step
            assert carrier is not None
            assert step is not None
            self.serving = step.target.key
            reply.start(200, headers(), carrier.first)
            return await self._carried(reply, carrier, step)
        finally:
            self._steps.close()
            if self._carrier is not None:
                await self._carrier.close()

    serving = ""  # the target whose content is being streamed

    async def _carried(self, reply: Reply, carrier: Carrier, step: Try) -> Refusal | None:
        watch = Watch(self.cast.stage.clock, step, self._patience(step).idle)
        try:
            await carrier.carry(reply, watch)
        except Exception as error:  # noqa: BLE001 - the walk judges it, and always stops here
            refusal = self._broken(error)
        else:
            self.usage = carrier.usage
            with suppress(StopIteration):
                self._steps.send(None)
            reply.finish()
            return None
        reply.finish(carrier.parting(refusal.status, refusal.message, refusal.kind))
        return refusal

    def _broken(self, error: Exception) -> Refusal:
        try:
            self._steps.throw(error)
        except ProviderError as failure:
            return of_error(failure, self.ask.dialect.name)
        raise AssertionError("a committed walk stops at its first error")

    # -- what an attempt is made of -----------------------------------------------------------

    async def _answer(self, step: Step) -> object:
        if isinstance(step, Wait):
            await sleep(self.cast.stage.clock, step.seconds)
            return None
        assert isinstance(step, Try)
        provider = self.cast.providers[step.target.provider]
        limit = self._patience(step).response
        with guard(self.cast.stage.clock, step, limit, "pre_first_byte"):
            if isinstance(provider, HttpProvider) and self._relays(provider, step):
                return await self._relayed(provider, step)
            return await self._translated(provider, step)

    async def _relayed(self, provider: HttpProvider, step: Try) -> bytes:
        body = await provider.relay(step.target.model, self._body(step), step.credential)
        try:
            self.usage = usage_of(provider.dialect, body)
        except (WireError, Garbled) as error:
            raise provider.not_an_answer(error, stream=False) from error
        return body

    async def _translated(self, provider: Provider, step: Try) -> bytes:
        response = await provider.generate(self._call(step))
        if reason := response.blank:
            raise ProviderError(Fault.EMPTY_CONTENT, message=reason, billing="maybe_billed")
        self.usage = response.usage
        named = response if response.id else replace(response, id=self._answer_id())
        return encode(self.ask.dialect.write_response(named, self.ask.model))

    async def _open(self, step: Step) -> object:
        if isinstance(step, Wait):
            await sleep(self.cast.stage.clock, step.seconds)
            return None
        assert isinstance(step, Try)
        provider = self.cast.providers[step.target.provider]
        patience = self._patience(step)
        carrier: Carrier
        if isinstance(provider, HttpProvider) and self._relays(provider, step):
            carrier = RawCarrier(provider, step, self._body(step))
        else:
            source = provider.stream(self._call(step))
            carrier = EventCarrier(source, self._writer(), patience.idle)
        try:
            with guard(self.cast.stage.clock, step, patience.first_byte, "pre_first_byte"):
                await carrier.establish()
        except BaseException:
            await carrier.close()
            raise
        self._carrier, self._step = carrier, step
        return COMMITTED

    def _relays(self, provider: HttpProvider, step: Try) -> bool:
        """Same dialect, and nothing in the request has to be changed for this target."""
        if provider.dialect.name != self.ask.dialect.name or not self.ask.where.relayable:
            return False
        caps = provider.capabilities(step.target.model)
        return self._harmless(caps) or fit(self.neutral, caps) is self.neutral

    def _harmless(self, caps: Capabilities) -> bool:
        """Seen from the bytes alone: nothing in the request could be too much for this target."""
        body = self.ask.body
        return caps is ANYTHING or not (
            b"image" in body
            or (not caps.tools and b'"tools"' in body)
            or (not caps.structured and b"schema" in body)
            or (not caps.streaming and self.ask.stream)
        )

    def _call(self, step: Try) -> Call:
        described = self.cast.described.get(step.target.provider)
        caps = ANYTHING if described is None else described.capabilities(step.target.model)
        return Call(step.target.model, fit(self.neutral, caps), step.credential)

    def _patience(self, step: Try) -> Patience:
        described = self.cast.described.get(step.target.provider)
        return PATIENCE if described is None else described.patience

    def _writer(self) -> StreamWriter:
        ask, name = self.ask, self._answer_id()
        match ask.dialect:
            case OpenAIChat() as chat:
                usage = wants_usage(self.neutral)
                return chat.writer(ask.model, include_usage=usage, id=name)
            case OpenAIResponses() | Anthropic() as dialect:
                return dialect.writer(ask.model, id=name)
            case other:
                return other.writer(ask.model)

    def _answer_id(self) -> str:
        """Clients tell answers apart by their ids, so no two of ours may be the same."""
        return ID_PREFIXES.get(self.ask.dialect.name, "") + token_hex(12)

    @property
    def neutral(self) -> Request:
        """The request in neutral types; read when first needed."""
        if self._neutral is None:
            ask = self.ask
            self._neutral = ask.dialect.read_request(ask.body, ask.model, ask.stream).request
        return self._neutral

    def _body(self, step: Try) -> bytes:
        """The client's body with `model` replaced and nothing else touched."""
        ask = self.ask
        if not ask.where.in_body or ask.model == step.target.model:
            return ask.body
        if self._shallow is None:
            self._shallow = SHALLOW.decode(ask.body)
        model = msgspec.Raw(ENCODER.encode(step.target.model))
        return ENCODER.encode({**self._shallow, "model": model})

    def _note(self, attempt: Attempt) -> None:
        self.story.append(attempt)
        self._observe(attempt)


class Peek(msgspec.Struct):
    """The two fields that routing needs."""

    model: str
    stream: bool | None = None


PEEK = msgspec.json.Decoder(Peek)


def peek(body: bytes) -> Peek:
    """Raises InvalidRequest naming the field that is wrong."""
    try:
        return PEEK.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_field(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None


def _field(message: str) -> str:
    if "missing required field" in message:
        return "$.model: the model is missing; name an alias or provider/model"
    return message
