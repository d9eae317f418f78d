"""What long computations share: a bar while they run, and a collector that seldom looks."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Say = Callable[[str], None]
BAR = 24  # characters
SELDOM = 50_000  # objects between looks for garbage; a rehearsal makes little


def bar(say: Say | None, noun: str) -> Callable[[int, int], None] | None:
    """Told of what is done, of how many, it draws that; None where nobody looks."""
    if say is None:
        return None

    def told(done: int, total: int) -> None:
        filled = BAR * done // max(total, 1)
        say(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done:,}/{total:,} {noun}")

    return told


@contextmanager
def little_garbage() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
