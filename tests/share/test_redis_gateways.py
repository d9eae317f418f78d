"""Gateways that share through a real Redis: no request waits for it, and no secret is shown."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.gateway.desk import ROOT, Line, Served, Upstream, aliases, always, provider, serving
from tests.rig import run
from tests.share.joined import SECRET, hosts
from tests.share.server import Server, eventually, needs_redis, redis
from understudy.gateway.config import InvalidConfig, read_config

pytestmark = needs_redis


class Load:
    """A few clients that ask without a pause, and how long each answer took."""

    def __init__(self, *served: Served) -> None:
        self.heard: list[tuple[int, float]] = []
        self._over = False
        self._tasks = [asyncio.ensure_future(self._ask(one)) for one in served for _ in range(2)]

    async def _ask(self, served: Served) -> None:
        line = await Line.to(served.address)
        body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}
        while not self._over:
            began = time.monotonic()
            heard = await line.ask("POST", "/v1/chat/completions", body)
            self.heard.append((heard.status, time.monotonic() - began))
        line.close()

    async def end(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)


async def _killed(server: Server, meanwhile: Callable[[], Awaitable[None]]) -> None:
    await server.kill()
    await meanwhile()
    await server.start()


async def _paused(server: Server, meanwhile: Callable[[], Awaitable[None]]) -> None:
    server.pause()
    await meanwhile()
    server.resume()


@pytest.mark.parametrize("trouble", [_killed, _paused])
def test_while_the_server_is_away_every_request_is_answered_as_ever(
    trouble: Callable[[Server, Callable[[], Awaitable[None]]], Awaitable[None]],
) -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(redis())
            up = await stack.enter_async_context(Upstream(always()))
            text = provider("p", up.url) + provider("q", up.url) + aliases(chat="p/a, q/a")
            text += f'[share]\nurl = "{server.url}"\n[gateway]\naccess_log = false\n'
            one = await stack.enter_async_context(serving(text))
            other = await stack.enter_async_context(serving(text))
            load = Load(one, other)

            async def meanwhile() -> None:
                await eventually(lambda: one.events("share_lost") and other.events("share_lost"))
                order = {"key": "q/b", "seconds": 60, "why": "mending"}
                assert (await one.ask("POST", "/understudy/api/bench", order)).status == 200

            await trouble(server, meanwhile)
            health = other.runtime.gateway.house.registry.health
            await eventually(lambda: not health.available("q/b"))
            await eventually(lambda: one.events("share_back") and other.events("share_back"))
            await load.end()
            for served in (one, other):
                kinds = [line["event"] for line in served.lines if "share" in str(line["event"])]
                assert kinds == ["share_lost", "share_back"]
            assert {status for status, _ in load.heard} == {200}
            assert len(load.heard) > 20
            assert (
                max(seconds for _, seconds in load.heard) < 1.5
            )  # the server was away for longer

    run(work())


def test_a_reload_takes_sharing_along_and_says_what_needs_a_restart() -> None:
    async def work() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(redis())
            text = provider("p", "http://127.0.0.1:1") + aliases(chat="p/a")
            share = f'[share]\nurl = "{server.url}"\n'
            served = await stack.enter_async_context(serving(text + share))
            [host] = await stack.enter_async_context(hosts(server.url))
            host.health.bench("p/a", 60)
            tracker = served.runtime.gateway.house.registry.health
            await eventually(lambda: not tracker.available("p/a"))

            served.path.write_text(text + share + 'name = "other"\n')
            served.runtime.reload()
            now = served.runtime.gateway.house.registry.health
            assert now is not tracker
            assert not now.available("p/a")
            host.health.unbench("p/a")
            await eventually(lambda: now.available("p/a"))
            now.bench("p/a", 60)
            await eventually(lambda: host.benched("p/a"))
            [line] = served.events("reloaded")
            assert line["needs_restart"] == ["share"]

    run(work())


def test_a_password_in_the_file_is_in_no_line_and_no_page() -> None:
    async def work() -> None:
        async with redis("--requirepass", "another") as server:
            url = f"redis://:{SECRET}@127.0.0.1:{server.port}/0"
            async with serving(f'[share]\nurl = "{url}"\n') as served:
                await eventually(lambda: served.events("share_lost"))
                pages = [
                    await served.ask("GET", path)
                    for path in ("/metrics", "/understudy/api/health")
                ]
                assert SECRET not in json.dumps(served.lines)
                assert not any(SECRET.encode() in page.body for page in pages)
                assert SECRET not in repr(served.runtime.opened)

    run(work())


@pytest.mark.parametrize(
    ("share", "path"),
    [
        ('url = "http://x"', "share.url"),
        ('url = "redis://x"\nname = "a b"', "share.name"),
        ('url = "redis://x"\ncluster = 1', "share.cluster"),
        ('ulr = "redis://x"', "share.ulr"),
    ],
)
def test_a_mistake_in_the_section_is_found(share: str, path: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_config(f"[share]\n{share}\n", {})
    assert [problem.path for problem in caught.value.problems] == [path]


def test_without_the_package_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    file = tmp_path / "understudy.toml"
    file.write_text('[share]\nurl = "redis://127.0.0.1:1"\n')
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from understudy.cli import main\n"
        f"sys.exit(main(['serve', '--port', '0', '--config', {str(file)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 2
    assert "share.url: needs the redis package: pip install 'understudy[redis]'" in done.stderr
