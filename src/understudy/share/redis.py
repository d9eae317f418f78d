"""Processes of several hosts tell each other through Redis or Valkey. Nobody ever waits for it.

One task does all the talking. What is told while the server is away is not kept for it: when it is
back, everything that still matters is told again. One line says that it is lost, one that it is
back.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

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

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import PubSub
    from redis.asyncio.cluster import RedisCluster

    Client = Redis | RedisCluster

PATIENCE = 2.0  # seconds for any answer of the server
BEAT = 1.0  # seconds of silence after which it is asked whether it is there
FIRST = 1.0  # seconds a process that starts waits to be told what others know
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds before the next try to connect; the last for ever
WAITING = 10_000  # messages not yet sent; the oldest are given up
REASON = 200  # characters
HELLO = encode(Message(kind="hello", origin="", stamp=0))

Note = Callable[..., None]  # event, level and fields of a log line


class NoRedis(UnderstudyError, ImportError):
    """The package that speaks to Redis is not installed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is, and under which name a deployment's facts lie there."""

    url: str = field(repr=False)  # may hold a password
    name: str = "default"
    cluster: bool = False
    limits: bool = False  # do rates of client keys lie there too

    @property
    def shown(self) -> str:
        """Host and port, for people."""
        parts = urlsplit(self.url)
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"

    def without_secret(self, text: str) -> str:
        secret = urlsplit(self.url).password
        for spelling in (secret, unquote(secret)) if secret else ():
            text = text.replace(spelling, "…")
        return text


class RedisLink:
    """One process's end."""

    def __init__(self, place: Place, note: Note) -> None:
        try:
            import_module("redis.asyncio")
        except ImportError:
            why = "needs the redis package: pip install 'understudy[redis]'"
            raise NoRedis(why) from None
        self.connected = False
        self._place = place
        self._channel, self._index = channel_of(place.name), index_of(place.name)
        self._note = note
        self._receive: Receive = lambda data: None
        self._queue: deque[bytes] = deque(maxlen=WAITING)
        self._filled = asyncio.Event()
        self._tried = asyncio.Event()
        self._open = False  # there is somebody to send to
        self._closed = False
        self._lost = False  # and it was said
        self._task: asyncio.Task[None] | None = None

    async def start(self, receive: Receive) -> None:
        """Waits a moment to be told what is known, and goes on without if nobody says it."""
        self._receive = receive
        self._task = asyncio.get_running_loop().create_task(self._stay())
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST):
                await self._tried.wait()

    def send(self, message: bytes) -> None:
        if self._open:
            self._queue.append(message)
            self._filled.set()

    async def close(self) -> None:
        # Both flags: older clients of the package may swallow a cancellation.
        self._closed, self._open = True, False
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=2 * PATIENCE)

    # -- here and away ------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Connect, again and again."""
        tries = 0
        while not self._closed:
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001 - whatever a server says, we go on
                tries = 0 if self.connected else tries + 1
                self._away(reason_of(error))
            pause = PAUSES[min(tries, len(PAUSES) - 1)]
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # not all hosts at once

    def _away(self, reason: str) -> None:
        self.connected = False
        self._tried.set()
        if not self._lost:
            self._lost = True
            self._say("share_lost", "warning", reason=self._place.without_secret(reason)[:REASON])

    def _back(self) -> None:
        self.connected = True
        self._tried.set()
        if self._lost:
            self._lost = False
            self._say("share_back", "info")

    def _say(self, event: str, level: str, **fields: object) -> None:
        self._note(event, level, server=self._place.shown, **fields)

    # -- one connection -----------------------------------------------------------------------

    async def _session(self) -> None:
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
            self._back()

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
                self._away(reason_of(error))
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


def reason_of(error: BaseException) -> str:
    """What went wrong first, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = " ".join(str(error).split())
    return words or type(error).__name__
