"""How many files this process may have open, and so how many clients it can serve.

Shells and service managers give a process a thousand and let it have more if it asks. A gateway
that has none left can neither let anybody in nor reach anybody.
"""

from __future__ import annotations

import resource
from contextlib import suppress

MANY = 1024 * 1024  # files; more are not asked for where there is no limit
STEPS = (65_536, 10_240, 4096)  # asked for in turn if all of them are refused
SPARE = 64  # files for everything that is no connection
FEW = 1000  # clients; who has room for less is told at once


def raised() -> int:
    """The limit on open files, after asking for as many as we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MANY
    most = MANY if hard == resource.RLIM_INFINITY else hard
    for wanted in (most, *(step for step in STEPS if step < most)):
        if wanted <= soft:
            break
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return soft


def room(files: int) -> int:
    """Clients that so many files are enough for, if all of them ask at once.

    A client is one, who answers it another, and a third may be kept to somebody else.
    """
    return max(1, (files - min(SPARE, files // 2)) // 3)
