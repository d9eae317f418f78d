"""Trackers that share through a real server, in the test's own loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.gateway.desk import ROOT
from understudy.core.health import HealthTracker
from understudy.share.redis import RedisLink
from understudy.share.sharing import Sharing
from understudy.share.tie import Place

SECRET = "pw-4711-planted"


def rights_on_the_page() -> list[str]:
    """The order that the how-to gives for a user of its own, with our secret in it."""
    page = (ROOT / "docs/how-to/share-health.md").read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if line.startswith("ACL SETUSER")]
    return line.replace("SECRET", SECRET).split(" ")


class Host:
    """A tracker that shares, and what its link had to say."""

    def __init__(self, place: Place, who: str = "gw") -> None:
        self.said: list[tuple[str, dict[str, object]]] = []
        self.health = HealthTracker(clock=time.monotonic)
        self.link = RedisLink(place, lambda event, level, **more: self.said.append((event, more)))
        self.sharing = Sharing(self.health, [self.link], who)

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.said]

    def benched(self, key: str) -> bool:
        return not self.health.available(key)


@asynccontextmanager
async def hosts(*places: Place | str) -> AsyncIterator[list[Host]]:
    async with AsyncExitStack() as stack:
        found = []
        for number, place in enumerate(places):
            host = Host(Place(place) if isinstance(place, str) else place, f"gw-{number}")
            stack.push_async_callback(host.sharing.close)
            await host.sharing.start()
            found.append(host)
        yield found
