"""One client request over one chain: bytes where both sides speak alike, else translated.

Drives the walk from callbacks: it moves when an attempt has an outcome, and never waits itself.
What differs from the library is only what an attempt is made of.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import Protocol

from understudy.core.errors import ChainExhausted, InvalidRequest, ProviderError, bare
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, RELAY, Step, Try, Wait, walk
from understudy.dialects.base import Asked, StreamWriter
from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import wants_usage
from understudy.driver import Cast
from understudy.gateway.ask import Ask, Errand, with_model
from understudy.gateway.flows import Alike, Translated
from understudy.gateway.freeing import Freeing
from understudy.gateway.glance import usage_of
from understudy.gateway.hops import Hop, Streamed, Whole
from understudy.gateway.http import Reply
from understudy.gateway.played import PlayedStream, PlayedWhole
from understudy.gateway.revised import Revised, Revision
from understudy.messages.bends import STRAIGHT, Bends, Undoing
from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.fences import Unfencing
from understudy.messages.fences import bare as bare_json
from understudy.messages.fit import fit
from understudy.messages.request import Request
from understudy.messages.response import Response, Usage
from understudy.providers.base import Call, Provider
from understudy.providers.http import HttpProvider
from understudy.timers import Handle, call_later

LARGE = 256 * 1024  # bytes; a larger body takes long enough to read for others to notice
PICTURE = b"image"  # what a body with a picture to change has in it somewhere


class Client(Protocol):
    """Who asked. Told of every attempt that failed, and at last of one outcome."""

    reply: Reply

    def wall(self) -> float:
        """Epoch seconds, for answers that are dated."""

    def attempt(self, attempt: Attempt) -> None: ...

    def begin(self, serving: str, first: bytes) -> None:
        """A stream's first content is in hand."""

    def answered(self, body: bytes) -> None:
        """All is well: the whole answer, or the rest of a stream."""

    def failed(self, error: Exception) -> None:
        """Nobody answered; or whose stream had begun broke off."""

    def broken(self, error: Exception) -> None:
        """A fault of ours."""


class Exchange:
    """One request being answered."""

    usage: Usage | None = None
    _seen: bool | None = None  # a picture
    _neutral: Request | None = None
    _hop: Hop | None = None
    _pause: Handle | None = None

    def __init__(self, ask: Ask, cast: Cast, deadline: float, client: Client) -> None:
        self.ask = ask
        self.cast = cast
        self.story: list[Attempt] = []
        self._client = client
        self._steps = walk(cast.chain, cast.stage, deadline=deadline, observe=self._note)

    def begin(self) -> None:
        self._go(None)

    def leave(self) -> None:
        """The client is gone: everything under way ends now, and nobody is blamed."""
        if self._hop is not None:
            self._hop.stop()
        if self._pause is not None:
            self._pause.cancel()
        self._steps.close()

    def close(self) -> None:
        """Nothing more to do. Who knew each other lets go: no garbage for the collector."""
        self._hop = None

    def parting(self, status: int, message: str, kind: str) -> bytes:
        """The last words to a client whose stream broke."""
        if self._hop is not None:
            return self._hop.parting(status, message, kind)
        return self.ask.dialect.writer(self.ask.model).write_error(status, message, kind)

    # -- told by attempts; see `hops.Caller` --------------------------------------------------

    def answered(self, answer: bytes) -> None:
        hop = self._hop
        if isinstance(hop, Streamed | PlayedStream):
            self.usage = hop.usage
        self._go(answer)

    def failed(self, error: Exception) -> None:
        self._go(None, error)

    def committed(self, hop: Hop) -> None:
        self._go(COMMITTED)

    # -- the walk -----------------------------------------------------------------------------

    def _go(self, value: object, error: Exception | None = None) -> None:
        """Tell the walk how it went, and do what it says next."""
        steps = self._steps
        try:
            while True:
                try:
                    step = steps.send(value) if error is None else steps.throw(error)
                except StopIteration as end:
                    return self._client.answered(end.value)
                except (ProviderError, ChainExhausted, InvalidRequest) as failure:
                    # Its traceback leads to frames that know it: it would wait for the collector.
                    return self._client.failed(bare(failure))
                try:
                    return self._act(step)
                except Exception as problem:  # noqa: BLE001 - the walk decides what to do with it
                    error = problem
        except Exception as bug:  # noqa: BLE001 - it must not leave its client waiting
            self._client.broken(bug)
        finally:
            error = None  # its traceback holds this frame: together they would be a cycle

    def _act(self, step: Step) -> None:
        if isinstance(step, Try):
            self._hop = self._stream(step) if self.ask.stream else self._plain(step)
        elif step is RELAY:
            self._relay()
        elif isinstance(step, Wait):
            clock = self.cast.stage.clock
            self._pause = call_later(clock, step.seconds, self._waited)

    def _waited(self) -> None:
        self._pause = None
        self._go(None)

    def _relay(self) -> None:
        hop = self._hop
        assert isinstance(hop, Streamed | PlayedStream)
        self._client.begin(hop.target, hop.first)
        hop.carry(self._client.reply)

    # -- what an attempt is made of -----------------------------------------------------------

    def _plain(self, step: Try) -> Hop:
        provider = self.cast.providers[step.target.provider]
        errand = self.ask.errand
        if errand is not None:
            return self._on_errand(_able(provider, errand), errand, step)
        if not isinstance(provider, HttpProvider):
            played = PlayedWhole(self, self.cast, step, self._call(step), self._written)
            played.start()
            return played
        return self._posted(Whole(self, self.cast, step), provider, step)

    def _on_errand(self, provider: HttpProvider, errand: Errand, step: Try) -> Hop:
        hop = Whole(self, self.cast, step)
        hop.read = self._run_errand
        hop.start(provider, errand.path(step.target.model), self._body(step))
        return hop

    def _stream(self, step: Try) -> Hop:
        provider = self.cast.providers[step.target.provider]
        if not isinstance(provider, HttpProvider):
            writer = self._writer(foreign=True)
            played = PlayedStream(self, self.cast, step, self._call(step), writer)
            played.start()
            return played
        return self._posted(Streamed(self, self.cast, step), provider, step)

    def _posted(self, hop: Whole | Streamed, provider: HttpProvider, step: Try) -> Hop:
        """Post what the target is to be asked; what may take long to make is made in a thread."""
        model = step.target.model
        if len(self.ask.body) > LARGE or self._pictured:
            post = partial(self._post, hop, provider, model)
            hop.prepare(provider, partial(self._made, provider, step), post)
        else:
            self._post(hop, provider, model, self._made(provider, step))
        return hop

    def _made(self, provider: HttpProvider, step: Try) -> tuple[bool, bytes]:
        """Does the answer go through as it comes, and the body to ask with."""
        alike = provider.dialect.name == self.ask.dialect.name and self.ask.relayable
        if alike and self._fits(provider, step):
            return alike, self._body(step)
        return alike, self._written_anew(provider, step, alike)

    def _post(
        self, hop: Whole | Streamed, provider: HttpProvider, model: str, made: tuple[bool, bytes]
    ) -> None:
        alike, body = made
        bends = STRAIGHT if alike else provider.dialect.bends(self.neutral, model)
        if isinstance(hop, Whole):
            hop.read = self._relayed if alike else partial(self._translated, bends)
        elif alike:
            hop.flow = Alike(provider, model)
        else:
            foreign = provider.dialect.name != self.ask.dialect.name
            hop.flow = Translated(provider.dialect.reader(), self._writer(foreign, bends))
        hop.start(provider, provider.dialect.path(model, hop.stream), body)

    def _relayed(self, provider: HttpProvider, body: bytes) -> bytes:
        self.usage = usage_of(provider.dialect, body)
        return body

    def _run_errand(self, provider: HttpProvider, body: bytes) -> bytes:
        assert self.ask.errand is not None
        self.usage = self.ask.errand.usage(body)
        return body

    def _translated(self, bends: Bends, provider: HttpProvider, body: bytes) -> bytes:
        return self._written(bends.undone(provider.dialect.read_response(body)))

    def _written(self, response: Response) -> bytes:
        if reason := response.blank:
            raise ProviderError(response.void, message=reason, billing="maybe_billed")
        self.usage = response.usage
        told = response if self.neutral.output is None else bare_json(response)
        if response.issuer != self.neutral.issuer:
            told = Freeing(self.neutral).response(told)
        asked = self._asked(foreign=True)
        named = told if told.id else replace(told, id=asked.id)
        return encode(self.ask.dialect.write_response(named, self.ask.model, asked))

    def _fits(self, provider: HttpProvider, step: Try) -> bool:
        """Nothing in the request has to be changed for this target."""
        if not provider.dialect.is_own(self.ask.body, step.target.model):
            return False
        caps = provider.capabilities(step.target.model)
        if caps is ANYTHING or self._harmless(caps):
            return True
        return fit(self.neutral, caps, stream=self.ask.stream) is self.neutral

    def _harmless(self, caps: Capabilities) -> bool:
        """Seen from the bytes alone: nothing in the request could be too much for this target."""
        body = self.ask.body
        return not (
            self._pictured
            or (not caps.tools and (b'"tools"' in body or b'"functions"' in body))
            or (not caps.structured and b"schema" in body)
            or (not caps.streaming and self.ask.stream)
        )

    @property
    def _pictured(self) -> bool:
        """May there be a picture in it? Looked for once: that takes 0.1 ms in a long request."""
        if self._seen is None:
            self._seen = self.ask.body.find(PICTURE) >= 0
        return self._seen

    def _written_anew(self, provider: HttpProvider, step: Try, alike: bool) -> bytes:
        """The request in the target's dialect."""
        if self.ask.kept and not alike:
            message = f"{self.ask.kept} points to what another API has kept"
            raise ProviderError(Fault.UNSUPPORTED, message=message, billing="not_sent")
        call = self._call(step)
        told = provider.dialect.write_request(call.request, call.model, self.ask.stream)
        if alike and not wants_usage(self.neutral):
            told.pop("stream_options", None)  # the client would get counts it did not ask for
        return encode(told)

    def _call(self, step: Try) -> Call:
        described = self.cast.described.get(step.target.provider)
        caps = ANYTHING if described is None else described.capabilities(step.target.model)
        fitted = fit(self.neutral, caps, stream=self.ask.stream)
        return Call(step.target.model, fitted, step.credential)

    def _writer(self, foreign: bool, bends: Bends = STRAIGHT) -> StreamWriter:
        """Writes for this client, who gets its answer as if the model had been asked by it."""
        writer = self.ask.dialect.writer(self.ask.model, self._asked(foreign))
        revisions: list[Revision] = [Undoing(bends).events] if bends else []
        if self.neutral.output is not None:
            revisions.append(Unfencing().events)
        if foreign and (freeing := Freeing(self.neutral)):
            revisions.append(freeing.events)
        return Revised(writer, revisions) if revisions else writer

    def _asked(self, foreign: bool) -> Asked:
        """Clients tell answers apart by their ids, so no two of ours may be the same."""
        name = self.ask.dialect.id_prefix + token_hex(12)
        return Asked(self.neutral, name, int(self._client.wall()), foreign)

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
        if not ask.in_body or ask.model == step.target.model:
            return ask.body
        return with_model(ask.body, ask.model, step.target.model)

    def _note(self, attempt: Attempt) -> None:
        self.story.append(attempt)
        if attempt.outcome not in {"ok", "skipped"}:  # of these the record tells
            self._client.attempt(attempt)


def _able(provider: Provider, errand: Errand) -> HttpProvider:
    """The provider, if it can run this errand."""
    if not isinstance(provider, HttpProvider) or provider.dialect.name != errand.dialect:
        message = f"{errand.name} needs a target that speaks {errand.dialect}"
        raise ProviderError(Fault.UNSUPPORTED, message=message, billing="not_sent")
    return provider
