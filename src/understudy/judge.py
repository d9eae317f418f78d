"""The judge of failures as programs ask it: the core's, told what time it is.

The core reads no clock. Without one, a delay given as a point in time is lost wherever the answer
has no `Date` beside it: a server that sends none, or headers of which only some were kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from understudy.core.classify import classify as by_rules
from understudy.core.faults import Verdict


def classify(  # noqa: PLR0913 - as the core's
    error: BaseException | str | None = None,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | Iterable[tuple[object, object]] | None = None,
    body: object = None,
    provider: str | None = None,
    stream: bool = False,
    cancelled: bool = False,
    now: float | None = None,
) -> Verdict:
    """The fault of one failed attempt, from whatever is known of it. Never raises.

    `cancelled` means that our caller left. `now` is when it happened, in epoch seconds, for delays
    given as a point in time by an answer without a `Date`; the present unless given.
    """
    return by_rules(
        error,
        status=status,
        headers=headers,
        body=body,
        provider=provider,
        stream=stream,
        cancelled=cancelled,
        now=time.time() if now is None else now,  # noqa: TID251 - what providers mean
    )
