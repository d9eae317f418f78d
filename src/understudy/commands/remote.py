"""A running gateway as the command line sees it: a question out, JSON or text back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from understudy.commands.parser import URL, CommandError, Unreachable
from understudy.core.errors import InvalidDSN, ProviderError
from understudy.providers.http import plain_url
from understudy.providers.pool import Pool
from understudy.providers.transport import Limits, Origin, Outgoing, render_head

Told = dict[str, object]
PATIENCE = 10.0  # seconds for an answer
LIMITS = Limits(connect=5.0, max_reply=32 * 1024 * 1024)


class Desk:
    """The interface for operators, at one gateway with one key."""

    def __init__(self, url: str | None, admin_key: str | None, env: Mapping[str, str]) -> None:
        given = url or env.get("UNDERSTUDY_URL") or URL
        self.url = given.rstrip("/").removesuffix("/understudy")
        self._key = admin_key or env.get("UNDERSTUDY_ADMIN", "")
        try:
            self._origin = Origin.from_url(self.url)
        except InvalidDSN as error:
            hint = "write it like --url http://127.0.0.1:8080"
            raise CommandError(f"{plain_url(given)!r}: {error}", hint) from None

    async def ask(self, path: str, *, has: str) -> Told:
        """`has` is a field that each answer of ours has: others know a 200 and an object, too."""
        return self._read(*await self._send("GET", path, b""), has)

    async def order(self, path: str, body: Mapping[str, object], *, has: str) -> Told:
        return self._read(*await self._send("POST", path, msgspec.json.encode(body)), has)

    async def text(self, path: str) -> str:
        status, body = await self._send("GET", path, b"")
        if status != 200:
            raise self._stranger(status)
        return body.decode("utf-8", "replace")

    async def _send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"accept": "application/json", "content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        base = urlsplit(self.url).path
        head = render_head(method, self._origin, base + path, headers)
        pool = Pool()
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await pool.send(Outgoing(self._origin, head, body), LIMITS)
                return answer.status, await answer.read()
        except ProviderError as error:
            raise Unreachable(
                f"no gateway at {self.url}: {error.message}", "is it running? `understudy serve`"
            ) from None
        except TimeoutError:
            raise Unreachable(f"no answer from {self.url} within {PATIENCE:g} s") from None
        finally:
            await pool.aclose()

    def _read(self, status: int, body: bytes, has: str) -> Told:
        try:
            told: Told = msgspec.json.decode(body, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._stranger(status) from None
        if status == 200 and has in told:
            return told
        error = told.get("error")
        why = error.get("message") if isinstance(error, dict) else None
        if status == 401:
            hint = "give --admin-key, or set UNDERSTUDY_ADMIN"
            raise CommandError(f"the gateway refuses us: {why}", hint)
        if status == 400:
            raise CommandError(str(why))
        raise self._stranger(status)

    def _stranger(self, status: int) -> Unreachable:
        return Unreachable(
            f"what answers at {self.url} is no gateway of ours (status {status})",
            "give the address that `understudy serve` printed, without a path",
        )
