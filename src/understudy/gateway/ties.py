"""What ties a process to its like: health with workers and hosts, limits with hosts."""

from __future__ import annotations

from socket import gethostname

from understudy.gateway.config import InvalidConfig, Problem
from understudy.gateway.house import House
from understudy.gateway.station import Station
from understudy.observe.metrics import Shared
from understudy.share.base import Link
from understudy.share.limits import SharedLimits
from understudy.share.local import LocalLink
from understudy.share.redis import NoRedis, RedisLink
from understudy.share.sharing import Sharing
from understudy.share.tie import Note, Place


class Ties:
    """Made at the start of a process and kept for its life, whatever house it serves."""

    def __init__(self, house: House, station: Station | None, note: Note) -> None:
        place = house.rules.share
        self._server = None if place is None else _link(place, note)
        self._limits: SharedLimits | None = None
        if place is not None and place.limits:
            self._limits = SharedLimits(place, note, house.registry.health.clock)
        links: list[Link] = []
        if station is not None:
            links.append(LocalLink(station.folder, station.name))
        if self._server is not None:
            links.append(self._server)
        who = gethostname() if station is None else f"{gethostname()} worker {station.number}"
        self._sharing = Sharing(house.registry.health, links, who) if links else None
        self._join(house)

    async def start(self) -> None:
        if self._sharing is not None:
            await self._sharing.start()
        if self._limits is not None:
            await self._limits.start()

    async def close(self) -> None:
        if self._sharing is not None:
            await self._sharing.close()
        if self._limits is not None:
            await self._limits.close()

    def move(self, house: House) -> None:
        """Serve this house from now on; its tracker was told what the one before knew."""
        if self._sharing is not None:
            self._sharing.move(house.registry.health)
        self._join(house)

    def told(self) -> Shared:
        """For the metrics."""
        sharing, server, limits = self._sharing, self._server, self._limits
        return Shared(
            {} if sharing is None else sharing.counts(),
            None if server is None else server.connected,
            {} if limits is None else limits.alone(),
            None if limits is None else limits.shared,
        )

    def _join(self, house: House) -> None:
        if self._limits is not None:
            for label, gate in house.gates.items():
                gate.join(label, self._limits)


def _link(place: Place, note: Note) -> RedisLink:
    try:
        return RedisLink(place, note)
    except NoRedis as error:
        raise InvalidConfig([Problem("share.url", str(error))]) from None
