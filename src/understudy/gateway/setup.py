"""What a gateway is to be, and what it then is: a house and the address it listens on.

Reads the file or the environment; listens to nothing and starts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from understudy.core.errors import UnderstudyError
from understudy.gateway.build import demo_house, exposed, house_of, house_of_env
from understudy.gateway.config import InvalidConfig, read_config
from understudy.gateway.files import MANY
from understudy.gateway.house import House
from understudy.gateway.portion import portion
from understudy.gateway.station import Station


@dataclass(frozen=True, slots=True)
class Setup:
    """What `serve` was told on the command line."""

    path: Path | None = None
    host: str | None = None
    port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    look: float = 1.0  # seconds between looks at the configuration file
    workers: int | None = None  # asked for; else what the file says
    station: Station | None = None  # of a worker; None for a gateway that is one process
    files: int = MANY  # that may be open at a time

    @property
    def worker(self) -> int | None:
        """A worker's number, from 1: for names of files that only one may write."""
        return None if self.station is None else self.station.number


@dataclass(frozen=True, slots=True)
class Opened:
    """A house and where it listens."""

    house: House
    host: str
    port: int
    kind: str  # "file", "environment" or "demo"
    workers: int = 1

    @property
    def fixed(self) -> dict[str, object]:
        """Settings that have no effect until the process is started anew."""
        rules = self.house.rules
        return {
            "gateway.host": self.host,
            "gateway.port": self.port,
            "gateway.workers": self.workers,
            "gateway.tracing": rules.tracing,
            "journal": rules.journal,
            "share": rules.share,
        }


def open_house(setup: Setup, old: House | None = None, text: str = "") -> Opened:
    """The house of the file, else of the environment, else the demo."""
    clock = time.monotonic
    if setup.path is not None:
        config = read_config(text or setup.path.read_text(encoding="utf-8"), setup.env)
        host = setup.host or str(config.gateway["host"])
        port = int(str(config.gateway["port"])) if setup.port is None else setup.port
        workers = setup.workers or int(str(config.gateway["workers"]))
        if setup.station is not None:
            config = portion(config, setup.station.of)
        house = house_of(config, setup.env, clock, old)
        return _kept_in(Opened(house, host, port, "file", workers))
    found = house_of_env(setup.env, clock)
    kind = "demo" if found is None else "environment"
    port = 8080 if setup.port is None else setup.port
    where = (setup.host or "127.0.0.1", port, kind, setup.workers or 1)
    return _kept_in(Opened(found or demo_house(clock), *where))


def open_anyhow(setup: Setup) -> tuple[Opened, str]:
    """A worker that starts while the file is bad serves the last good one; and why it does."""
    try:
        return open_house(setup), ""
    except (UnderstudyError, OSError, UnicodeDecodeError) as error:
        text = "" if setup.station is None else setup.station.last_good()
        if not text:
            raise
        return open_house(setup, text=text), str(error)


def _kept_in(opened: Opened) -> Opened:
    if problems := exposed(opened.host, opened.house.keys):
        raise InvalidConfig(problems)
    return opened


def address_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
