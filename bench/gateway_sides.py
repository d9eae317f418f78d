"""Who is measured and on what: the upstreams, the sides that stand before them, the cases.

A side has doors: where a case is asked, with which model and headers. A side without a case's
door does not take part in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template

import gateway_peers
from gateway_peers import KEY, PEERS
from peers import Missing
from processes import HERE, Process, Start, compiled, free_ports

AUTHORIZED = (f"Authorization: Bearer {KEY}",)
MODEL = "understudy-1"
NEVER = 10**9  # failures in a row, a threshold nobody reaches
# One attempt at each target, as the others make it; and nobody is benched for failing.
ALIKE = f"[health]\nthreshold = {NEVER}\n\n[policy]\ntransient_retries = 0\n\n"
EVENTS = 65  # of a stream: 64 chunks, and the end mark in the last of them


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is asked, over and over."""

    name: str
    door: str
    connections: int
    stream: bool = False
    means: str = ""

    @property
    def body(self) -> str:
        return "stream" if self.stream else "plain"


# Those that are compared stand side by side, so that they have the same neighbours.
CASES = (
    Case("plain 1", "live", 1, means="a plain request, one connection"),
    Case("benched 32", "benched", 32, means="the head is benched, the next one serves"),
    Case("plain 32", "live", 32, means="plain requests, 32 connections"),
    Case("translated 32", "translated", 32, means="OpenAI in, Anthropic out"),
    Case("failing 32", "failing", 32, means="the head answers 500 each time, the next one serves"),
    Case("stream 16", "live", 16, True, "streams of 64 chunks as fast as they come"),
    Case("bulk stream 16", "bulk", 16, True, "streams of 64 chunks that come all at once"),
    Case("translated stream 16", "translated", 16, True, "the same, translated"),
    Case("paced 32", "paced", 32, True, "streams of 64 chunks, 5 ms apart"),
)

# What each upstream does; see upstream.c.
UPSTREAMS = {
    "live": "ok:0",
    "bulk": "ok",
    "dead": "500",
    "busy": "429",
    "paced": "ok:5000",
    "crowd": "ok:1000000:15",
}


@dataclass(frozen=True, slots=True)
class Door:
    """Where a case is asked of a side."""

    port: int
    model: str = MODEL
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """Somebody who is measured."""

    name: str
    version: str
    doors: Mapping[str, Door]
    start: Start | None = None  # None: it is the upstream itself
    exact: bool = True  # streams come out with as many events as went in


@dataclass(frozen=True, slots=True)
class Stage:
    """What all sides stand before."""

    folder: Path
    ports: Mapping[str, int] = field(
        default_factory=lambda: dict(zip(UPSTREAMS, free_ports(len(UPSTREAMS)), strict=True))
    )

    @property
    def upstream_words(self) -> list[str]:
        return [f"{port}:{UPSTREAMS[name]}" for name, port in self.ports.items()]

    def body(self, kind: str, model: str) -> Path:
        """A body that names this model."""
        path = self.folder / f"{kind}-{model}.json"
        if not path.exists():
            path.write_text((HERE / "bodies" / f"{kind}.json").read_text().replace("MODEL", model))
        return path


@contextmanager
def put_up() -> Iterator[tuple[Stage, str]]:
    """A stage with its upstream running, and the load generator's path."""
    with tempfile.TemporaryDirectory(prefix="understudy-bench-") as name:
        folder = Path(name)
        stage = Stage(folder)
        upstream, load = compiled("upstream", folder), compiled("load", folder)
        start = Start([upstream, *stage.upstream_words], stage.ports["live"])
        with Process(start, 1, folder / "upstream.log"):
            yield stage, load


def direct(stage: Stage) -> Side:
    doors = {name: Door(stage.ports[name]) for name in ("live", "bulk", "paced")}
    return Side("direct", "", doors)


def nginx(stage: Stage) -> Side:
    binary = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if binary is None:
        raise Missing("nginx is not installed; on Debian: apt install nginx-light")
    names = ("live", "bulk", "paced", "failing")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    folder = stage.folder / "nginx"
    folder.mkdir(exist_ok=True)
    values = {**stage.ports, **{f"nginx_{name}": port for name, port in ports.items()}}
    template = Template((HERE / "nginx.conf.template").read_text())
    config = folder / "nginx.conf"
    config.write_text(template.substitute({k: str(v) for k, v in values.items()}, folder=folder))
    told = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False).stderr
    known = re.search(r"nginx/(\S+)", told)
    doors = {name: Door(port) for name, port in ports.items()}
    start = Start([binary, "-p", str(folder), "-c", str(config)], ports["live"])
    return Side("nginx", known[1] if known else "?", doors, start)


def ours(stage: Stage) -> Side:
    """This gateway as people run it, with client keys, access log and metrics, but `ALIKE`."""
    try:
        told = version("understudy")
    except PackageNotFoundError:
        told = "of this checkout"
    names = ("live", "bulk", "paced", "translated", "failing", "benched", "crowd")
    return _ours(stage, ("ours", told), names, ALIKE)


def shipped(stage: Stage) -> Side:
    """The same with health and policy as they come: who fails each time is soon benched."""
    return _ours(stage, ("shipped", ""), ("failing",), "")


def _ours(stage: Stage, named: tuple[str, str], doors: Sequence[str], more: str) -> Side:
    (port,) = free_ports(1)
    config = stage.folder / f"{named[0]}.toml"
    config.write_text(our_config(port, stage.ports, more))
    command = [sys.executable, "-m", "understudy.cli", "serve", "--config", str(config)]
    environment = {"PYTHONPATH": str(HERE.parent / "src")}
    start = Start(command, port, "/healthz", env=environment)
    return Side(*named, {name: Door(port, name, AUTHORIZED) for name in doors}, start)


def our_config(port: int, upstreams: Mapping[str, int], more: str) -> str:
    def provider(name: str, address: str, more: str = "") -> str:
        url = f"http://127.0.0.1:{address}"
        return f'[providers.{name}]\nbase_url = "{url}"\napi_key = "sk-upstream"\n{more}\n'

    chains = {
        "live": f"live/{MODEL}",
        "bulk": f"bulk/{MODEL}",
        "paced": f"paced/{MODEL}",
        "crowd": f"crowd/{MODEL}",
        "translated": f"claude/{MODEL}",
        "failing": f"dead/{MODEL}, live/{MODEL}",
        "benched": f"busy/{MODEL}, live/{MODEL}",
    }
    aliases = "".join(f'{name} = "{chain}"\n' for name, chain in chains.items())
    return (
        f'[gateway]\nport = {port}\nkeys = ["{KEY}"]\naccess_log = true\n\n{more}'
        + "".join(provider(name, f"{port}/v1") for name, port in upstreams.items())
        + provider("claude", str(upstreams["live"]), 'dialect = "anthropic"')
        + f"\n[aliases]\n{aliases}"
    )


def litellm(stage: Stage) -> Side:
    peer = PEERS["litellm"]
    gateway_peers.set_up(peer)
    (port,) = free_ports(1)
    start = gateway_peers.litellm(port, stage.ports, stage.folder)
    names = ("live", "bulk", "paced", "translated", "failing")
    doors = {name: Door(port, name, AUTHORIZED) for name in names}
    return Side("litellm", peer.version, doors, start, exact=False)


def portkey(stage: Stage) -> Side:
    peer = PEERS["portkey"]
    gateway_peers.set_up(peer)
    (port,) = free_ports(1)
    live, bulk, paced, dead = (stage.ports[name] for name in ("live", "bulk", "paced", "dead"))
    targets = {
        "live": (("openai", live),),
        "bulk": (("openai", bulk),),
        "paced": (("openai", paced),),
        "failing": (("openai", dead), ("openai", live)),
        "translated": (("anthropic", live),),
    }
    doors = {
        name: Door(port, MODEL, (gateway_peers.portkey_header(*pairs),))
        for name, pairs in targets.items()
    }
    start = gateway_peers.portkey(port, stage.folder)
    return Side("portkey", peer.version, doors, start, exact=False)


SIDES: dict[str, Callable[[Stage], Side]] = {
    "direct": direct,
    "nginx": nginx,
    "ours": ours,
    "shipped": shipped,
    "litellm": litellm,
    "portkey": portkey,
}
