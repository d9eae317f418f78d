"""What carries health messages between processes. Bytes only; knows nothing of their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Receive = Callable[[bytes], None]


class Link(Protocol):
    """A way to everybody else. It may lose, repeat and reorder messages; it never waits."""

    async def start(self, receive: Receive) -> None:
        """Begin to listen; `receive` is called in this loop with every message of others."""

    def send(self, message: bytes) -> None:
        """To all others, soon. Never blocks, never raises."""

    async def close(self) -> None:
        """Stop listening and let go of what was opened."""
