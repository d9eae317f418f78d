"""Processes of several hosts tell each other through Redis or Valkey. Nobody ever waits for it.

One task does all the talking. What is told while the server is away is not kept for it: when it is
back, everything that still matters is told again. One line says that it is lost, one that it is
back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from understudy.core.errors import UnderstudyError
from understudy.share.base import Receive
from understudy.share.kept import (
    FIND,
    FOREVER,
    KEEP,
    READ_MOST,
    aged,
    channel_of,
    index_of,
    key_of,
    milliseconds,
)
from understudy.share.message import Message, decode, encode
from understudy.share.tie import PATIENCE, Note, Place, Tie

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import PubSub
    from redis.asyncio.cluster import RedisCluster

    Client = Redis | RedisCluster

BEAT = 1.0  # seconds of silence after which it is asked whether it is there
WAITING = 10_000  # messages not yet sent; the oldest are given up
HELLO = encode(Message(kind="hello", origin="", stamp=0))


class NoRedis(UnderstudyError, ImportError):
    """The package that speaks to Redis is not installed."""


def needed() -> None:
    """Raises NoRedis unless the package is installed."""
    try:
        import_module("redis.asyncio")
    except ImportError:
        why = "needs the redis package: pip install 'understudy[redis]'"
        raise NoRedis(why) from None


class RedisLink:
    """One process's end."""

    lost_and_back = ("share_lost", "share_back")

    def __init__(self, place: Place, note: Note) -> None:
        needed()
        self._tie = Tie(place, note, self)
        self._place = place
        self._channel, self._index = channel_of(place.name), index_of(place.name)
        self._receive: Receive = lambda data: None
        self._queue: deque[bytes] = deque(maxlen=WAITING)
        self._filled = asyncio.Event()
        self._open = False  # there is somebody to send to

    @property
    def connected(self) -> bool:
        return self._tie.here

    async def start(self, receive: Receive) -> None:
        """Waits a moment to be told what is known, and goes on without if nobody says it."""
        self._receive = receive
        await self._tie.start()

    def send(self, message: bytes) -> None:
        if self._open:
            self._queue.append(message)
            self._filled.set()

    async def close(self) -> None:
        self._open = False
        await self._tie.close()

    def away(self) -> None:
        """Nothing: what is told meanwhile is told again when the server is back."""

    # -- one connection -----------------------------------------------------------------------

    async def session(self) -> None:
        ears = _plain(self._place.url)
        mouth = client_of(self._place)
        heard = ears.pubsub()
        try:
            await self._subscribe(heard)
            await self._read(mouth)
            self._queue.clear()
            self._open = True
            await self._tell_again(mouth)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._while_open(self._listen(heard)))
                group.create_task(self._while_open(self._speak(mouth)))
        finally:
            self._open = False
            for one in (heard, mouth, ears):
                with suppress(Exception):
                    async with asyncio.timeout(PATIENCE):
                        await one.aclose()

    async def _while_open(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        finally:
            self._open = False  # so that the other ends too

    async def _subscribe(self, heard: PubSub) -> None:
        """Before anything is read: what is told in between would be missed."""
        async with asyncio.timeout(PATIENCE):
            await heard.subscribe(self._channel)
            while await heard.get_message(timeout=BEAT) is None:
                pass

    async def _read(self, mouth: Client) -> None:
        async with asyncio.timeout(PATIENCE):
            pairs = await mouth.execute_command("EVAL", FIND, 1, self._index, READ_MOST)
            found = await mouth.execute_command("MGET", *pairs[::2]) if pairs else ()
        for data, remaining in zip(found, pairs[1::2], strict=True):
            message = decode(data) if data else None
            if message is not None:
                self._receive(aged(message, int(remaining)))

    async def _listen(self, heard: PubSub) -> None:
        asked = False
        while self._open:
            message = await heard.get_message(timeout=BEAT)
            if message is not None:
                asked = False
                if message["type"] == "message":
                    self._receive(message["data"])
            elif asked:
                raise TimeoutError(f"no answer within {BEAT:g} s")
            else:
                asked = True
                async with asyncio.timeout(PATIENCE):
                    await heard.ping()

    async def _speak(self, mouth: Client) -> None:
        while self._open:
            try:
                async with asyncio.timeout(BEAT):
                    await self._filled.wait()
            except TimeoutError:
                async with asyncio.timeout(PATIENCE):
                    await mouth.ping()
                if not self.connected:
                    await self._tell_again(mouth)
            await self._empty(mouth)

    async def _tell_again(self, mouth: Client) -> None:
        """Everything that still matters; if the server takes it, all is well."""
        self._receive(HELLO)
        if await self._empty(mouth):
            self._tie.back()

    async def _empty(self, mouth: Client) -> bool:
        """Send what waits; False if the server refused to keep some of it."""
        from redis.exceptions import ReadOnlyError, ResponseError

        kept = True
        self._filled.clear()
        while self._queue:
            try:
                await self._keep(mouth, self._queue[0])
            except ReadOnlyError:
                raise  # a replica; the next connection may lead to the primary
            except ResponseError as error:  # full, or not allowed
                kept = False
                self._tie.away(error)
            self._queue.popleft()
        return kept

    async def _keep(self, mouth: Client, data: bytes) -> None:
        message = decode(data)
        if message is None or message.kind == "hello":
            return  # a newcomer has read what is known
        keys = (key_of(self._place.name, message), self._index)
        arguments = (self._channel, data, milliseconds(message), int(FOREVER * 1000))
        async with asyncio.timeout(PATIENCE):
            await mouth.execute_command("EVAL", KEEP, len(keys), *keys, *arguments)


def client_of(place: Place) -> Client:
    """Somebody to send commands by."""
    return _cluster(place.url) if place.cluster else _plain(place.url)


def _plain(url: str) -> Redis:
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    # Without retries of its own: two layers of them multiply.
    never = Retry(NoBackoff(), 0)
    return Redis.from_url(
        url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, retry=never
    )


def _cluster(url: str) -> RedisCluster:
    from redis.asyncio.cluster import RedisCluster

    return RedisCluster.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
