"""What went wrong on the way, as a `ProviderError`: the one place that knows socket errors.

Everything that can happen between us and a provider is `transient`. The billing label says what
the provider may charge for: nothing when the request was never written (`not_sent`), perhaps
something once it was (`maybe_billed`). `refused`, for an answer that is an error, is for others.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

from understudy.core.errors import FROM_HERE, ProviderError, bare, is_ours
from understudy.core.faults import Fault

if TYPE_CHECKING:
    from understudy.providers.transport import Origin


class Malformed(Exception):
    """The peer does not speak the HTTP it should."""


class TooLarge(Exception):
    """A head or a body past its limit."""


class Cut(EOFError):
    """The peer closed the connection before the end of its answer."""


def own(error: BaseException) -> str:
    return str(error)


def certificate(error: BaseException) -> str:
    why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""
    return f"showed a certificate we do not trust ({why or 'verification failed'})"


def handshake(error: BaseException) -> str:
    why = error.reason if isinstance(error, ssl.SSLError) else ""
    return f"failed at TLS ({(why or type(error).__name__).replace('_', ' ').lower()})"


def lookup(error: BaseException) -> str:
    why = error.strerror if isinstance(error, OSError) else ""
    return f"has no address ({why or 'name lookup failed'})"


def system(error: BaseException) -> str:
    why = error.strerror if isinstance(error, OSError) else ""
    what = FROM_HERE if is_ours(error) else "cannot be reached"
    return f"{what} ({why or type(error).__name__})"


# The first row that fits is told; a subclass comes before its base.
TOLD: tuple[tuple[type[BaseException], Callable[[BaseException], str] | str], ...] = (
    (Malformed, own),
    (TooLarge, own),
    (Cut, own),
    (ssl.SSLCertVerificationError, certificate),
    (ssl.SSLError, handshake),
    (socket.gaierror, lookup),
    (ConnectionRefusedError, "refused the connection"),
    (ConnectionResetError, "reset the connection"),
    (ConnectionAbortedError, "aborted the connection"),
    (BrokenPipeError, "closed the connection while being written to"),
    (TimeoutError, lambda error: str(error) or "timed out"),
    (EOFError, "closed the connection"),
    (OSError, system),
    (UnicodeError, "is no name that can be looked up"),
)


def cut_off(error: ProviderError) -> ProviderError:
    """A socket that dies after content was handed out is a broken stream, not a blip."""
    if error.fault is Fault.TRANSIENT:
        error.fault = Fault.STALL_MID_STREAM
    return error


def trouble(error: BaseException, origin: Origin, sent: bool) -> ProviderError:
    """This error as a failed attempt: whose, what, and whether it may be on the bill."""
    told = next((text for kind, text in TOLD if isinstance(error, kind)), type(error).__name__)
    what = told if isinstance(told, str) else told(error)
    failure = ProviderError(
        Fault.TRANSIENT,
        message=f"{origin.authority} {what}",
        billing="maybe_billed" if sent else "not_sent",
    )
    failure.__cause__ = bare(error)
    return failure
