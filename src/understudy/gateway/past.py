"""The last requests, in little room.

Kept as objects, ten thousand of them are megabytes through which every new request walks: what it
makes lies in memory that was last used a second ago, and a tenth of its CPU time goes into
waiting for that. Packed, they leave their places warm for the next one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

import msgspec

from understudy.observe.record import Record

MOST = 10_000  # requests
ROOM = 64 * 1024 * 1024  # bytes; long names and long chains are remembered for a shorter time
BLOCK = 64  # packed at a time
PACK = msgspec.msgpack.Encoder().encode
UNPACK = msgspec.msgpack.Decoder(list[Record]).decode
T = TypeVar("T")


class Past:
    """A reader that remembers."""

    __slots__ = ("_blocks", "_fresh", "_most", "_room", "_size", "so_far")

    def __init__(self, most: int = MOST, room: int = ROOM) -> None:
        self.so_far = 0  # requests heard of
        self._most = most
        self._room = room
        self._size = 0  # bytes of all blocks
        self._fresh: list[Record] = []
        self._blocks: deque[bytes] = deque()

    def __len__(self) -> int:
        return min(len(self._blocks) * BLOCK + len(self._fresh), self._most)

    def finished(self, record: Record) -> None:
        self.so_far += 1
        self._fresh.append(record)
        if len(self._fresh) >= BLOCK:
            # Let go first: what cannot be packed must not be tried again with every request.
            fresh, self._fresh = self._fresh, []
            self._keep(PACK(fresh))

    def _keep(self, block: bytes) -> None:
        self._blocks.append(block)
        self._size += len(block)
        while (len(self._blocks) - 1) * BLOCK >= self._most or self._size > self._room:
            self._size -= len(self._blocks.popleft())

    def last(self, most: int = MOST, since: int = 0) -> Iterator[Record]:
        """The last ones that came after the first `since`, oldest first; unpacked when read."""
        count = min(most, len(self), max(0, self.so_far - since))
        blocks, have = [], len(self._fresh)
        for block in reversed(self._blocks):
            if have >= count:
                break
            blocks.append(block)
            have += BLOCK
        older = chain.from_iterable(map(UNPACK, reversed(blocks)))
        return islice(chain(older, tuple(self._fresh)), have - count, None)


async def gently(items: Iterable[T]) -> list[T]:
    """All of these, a block in a turn of the event loop: requests come first."""
    found: list[T] = []
    rest = iter(items)
    while some := list(islice(rest, BLOCK)):
        found += some
        await asyncio.sleep(0)
    return found
