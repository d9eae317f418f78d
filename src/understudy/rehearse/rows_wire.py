# ruff: noqa: E501 - tables: rows are read across
"""Rows of the catalogue: faults of connections, and answers that are none."""

from __future__ import annotations

from socket import gaierror
from ssl import SSLCertVerificationError

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.messages.response import Response
from understudy.providers.fake import HANG as SILENCE
from understudy.providers.fake import Chunks, Outcome, Pause
from understudy.rehearse.named import BLIP, EVENTS, FINE, ON, OVER, Named
from understudy.rehearse.wire import (
    CLOSE,
    END,
    HANG,
    RESET,
    Drip,
    First,
    Open,
    Raw,
    Reply,
    Rest,
    Say,
    Steps,
)

T, EMPTY = Fault.TRANSIENT, Fault.EMPTY_CONTENT
STALL, BROKEN = Fault.STALL_PRE_FIRST_BYTE, Fault.STALL_MID_STREAM
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
MIB = 1 << 20
BOMB = 96 * MIB  # blanks; more than any sensible limit on an unpacked answer


def _reset() -> Outcome:
    return ConnectionResetError(104, "reset by peer")


def _no_answer() -> Outcome:
    return ProviderError(T, message="not an answer", billing="maybe_billed")


def _broken() -> Outcome:
    return Chunks("half", ProviderError(BROKEN, message="broke off", billing="maybe_billed"))


def _begun(*steps: Say | First | Raw, end: Steps = (END,)) -> Steps:
    return (Open(), *steps, *end)


# fmt: off
CONNECTION = (
    Named("refused", "nobody listens", T, BLIP, outcome=lambda: ConnectionRefusedError(111, "refused")),
    Named("unknown-host", "the name has no address", T, BLIP, outcome=lambda: gaierror(-2, "name not known")),
    Named("bad-certificate", "TLS that cannot be trusted", T, BLIP, outcome=lambda: SSLCertVerificationError("self-signed")),
    Named("reset-before-headers", "reset once the request is read", T, BLIP, (RESET,), (RESET,), _reset),
    Named("closed-before-headers", "closed without a word", T, BLIP, (CLOSE,), (CLOSE,), _reset),
    Named("reset-inside-headers", "reset in the middle of the head", T, BLIP,
          (Raw(b"HTTP/1.1 200 OK\r\ncontent-ty"), RESET), (Raw(b"HTTP/1.1 200 OK\r\ncontent-ty"), RESET), _reset),
    Named("reset-after-headers", "a head, then a reset", T, BLIP,
          (Reply(missing=10**6), RESET), (Open(), RESET), _reset),
    Named("reset-inside-body", "a reset before the answer is whole", T, BLIP,
          (Reply(missing=9), RESET), _begun(Say("opening"), end=(RESET,)), _reset),
    Named("cut-body", "closed before the answer is whole", T, BLIP,
          (Reply(missing=9), CLOSE), _begun(Say("opening"), end=(CLOSE,)), _no_answer),
    Named("wrong-length", "a length larger than the answer", T, BLIP,
          (Reply(extra=99_999), CLOSE), None, _no_answer),
    Named("not-http", "another protocol answers", T, BLIP,
          (Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), CLOSE), (Raw(b"SSH-2.0-OpenSSH_9.2\r\n"), CLOSE), _no_answer),
)
SILENCES = (
    Named("silence", "the request is read, and that was it", STALL, ON, (HANG,), (HANG,), lambda: SILENCE),
    Named("silence-after-headers", "a head, and that was it", STALL, ON,
          (Reply(missing=10**6), HANG), (Open(), HANG), lambda: SILENCE),
    Named("silence-inside-body", "half an answer, and that was it", T, BLIP, (Reply(missing=9), HANG), None, _no_answer),
    Named("drip", "an answer, a byte now and then", T, BLIP, (Drip(0.05),), None, _no_answer),
    Named("drip-stream", "a stream, a byte now and then", STALL, ON, None, (Drip(0.05, stream=True),), lambda: SILENCE),
    Named("comments-only", "signs of life, and no content", STALL, ON, None,
          _begun(Say("comment", times=9), end=(HANG,)), lambda: SILENCE, dialects=EVENTS),
    Named("opening-only", "the envelope of a stream, no content", STALL, ON, None,
          _begun(Say("opening"), end=(HANG,)), lambda: SILENCE),
)
NO_ANSWERS = (
    Named("empty-200", "200 without a body", T, BLIP, (Reply(body=b""),), (Reply(body=b"", kind="text/event-stream"),), _no_answer),
    Named("no-events", "a stream that ends at once", T, BLIP, None, (Open(), END), _no_answer),
    Named("no-choices", "an answer that holds none", EMPTY, ON, (Reply(body="nothing"),), None, Response),
    Named("blank", "nothing but white space", EMPTY, ON, (Reply(body="blank"),), (Open(), Say("blank content"), Rest(0.02), Say("blank end"), END), lambda: Response(" \n")),
    Named("reasoning-only", "thoughts and no answer", EMPTY, ON, (Reply(body="thinking"),), None, lambda: Response(reasoning="hm")),
    Named("malformed", "JSON that breaks off", T, BLIP, (Reply(body=b'{"id": "x", "cho'),), _begun(Say("opening", "bad event")), _no_answer),
    Named("html-200", "a page with status 200", T, BLIP, (Reply(body=HTML, kind="text/html"),), (Reply(body=HTML, kind="text/html"),), _no_answer),
    Named("error-200", "an error with status 200", T, BLIP, (Reply(body="error body"),), (Reply(body="error body"),),
          lambda: ProviderError(T, message="overloaded")),
    Named("too-large", "an answer beyond every limit", T, BLIP, (Reply(padding=BOMB),), (Reply(padding=BOMB, kind="text/event-stream"),), _no_answer),
    Named("gzip-bomb", "small on the wire, huge unpacked", T, BLIP, (Reply(padding=BOMB, gzipped=True),),
          (Reply(padding=BOMB, gzipped=True, kind="text/event-stream"),), _no_answer),
    Named("endless-line", "one event without an end", T, BLIP, None,
          _begun(Raw(b""), Say(b"data: " + b"x" * 65536), Say(b"x" * 65536, times=600)), _no_answer, dialects=EVENTS),
    Named("error-first", "an error as the first event", T, BLIP, None, _begun(Say("error")), lambda: ProviderError(T, message="overloaded")),
    Named("error-after-opening", "an error before any content", T, BLIP, None, _begun(Say("opening", "error")),
          lambda: ProviderError(T, message="overloaded")),
    Named("bad-event-first", "an event that is no JSON", T, BLIP, None, _begun(Say("bad event")), _no_answer),
    Named("cut-before-content", "a stream that ends after its envelope", T, BLIP, None, _begun(Say("opening")), _no_answer),
)
AFTER_CONTENT = (
    Named("reset-mid-stream", "reset after content", BROKEN, OVER, None, _begun(Say("content"), end=(RESET,)), _broken, late=True),
    Named("cut-mid-stream", "closed after content", BROKEN, OVER, None, _begun(Say("content"), end=(CLOSE,)), _broken, late=True),
    Named("no-end-mark", "a polite end without the end mark", BROKEN, OVER, None, _begun(Say("content")), _broken, late=True,
          dialects=EVENTS),
    Named("silence-mid-stream", "content, and that was it", BROKEN, OVER, None, _begun(Say("content"), end=(HANG,)),
          lambda: Chunks("half", Pause(1e6)), late=True),
    Named("comments-mid-stream", "content, then only signs of life", BROKEN, OVER, None,
          _begun(Say("content"), Say("comment", times=9), end=(HANG,)), lambda: Chunks("half", Pause(1e6)), late=True, dialects=EVENTS),
    Named("error-mid-stream", "an error event after content", T, OVER, None, _begun(Say("content", "error")),
          lambda: Chunks("half", ProviderError(T, message="overloaded")), late=True),
)
ANSWERS = (
    Named("filtered", "withheld by a filter: an answer, not a fault", None, FINE, (Reply(body="filtered"),),
          _begun(Say("filtered streamed")), lambda: Response(finish_reason="content_filter"), dialects=EVENTS),
    Named("duplicate-event", "the same piece twice: the target's own words", None, FINE, None,
          _begun(Say("content", "last event again", "rest", "end")), lambda: Chunks("half ", "half ", "whole")),
    Named("plain-for-stream", "a whole answer where a stream was asked for", None, FINE, None, (Reply(),), lambda: "half whole"),
    Named("wrong-type", "the right bytes under a wrong content type", None, FINE, (Reply(kind="text/plain"),),
          (Open("text/plain"), Say("stream"), END), lambda: "half whole"),
    Named("slow-but-well", "a short rest before a good answer", None, FINE, (Rest(0.05), Reply()),
          (Open(), Say("opening"), Rest(0.05), Say("stream"), END), lambda: "half whole"),
)
# fmt: on
ROWS = (*CONNECTION, *SILENCES, *NO_ANSWERS, *AFTER_CONTENT, *ANSWERS)
