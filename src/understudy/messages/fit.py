"""A request made to fit one target. Never changes what it is given; nothing to do: same object."""

from __future__ import annotations

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.messages.capabilities import ANYTHING, Capabilities, refusal
from understudy.messages.request import Request


def fit(request: Request, caps: Capabilities) -> Request:
    """The request as a target with these capabilities can take it, or `unsupported`."""
    if caps is ANYTHING:
        return request
    if reason := refusal(request, caps):
        raise ProviderError(Fault.UNSUPPORTED, message=reason, billing="not_sent")
    return request
