"""The products of the scoreboard: how each is told to fail over in order, and where it is asked.

Each is configured as its own documentation says, with the same timeout and otherwise as shipped.
Every case has a head of its own, so that a bench or cooldown of one does not reach the next.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gateway_peers
from gateway_peers import KEY, PEERS
from processes import HERE, Start, free_ports
from scoreboard_client import Door
from scoreboard_judge import Case

UPSTREAM_KEY = "sk-upstream"


@dataclass(frozen=True, slots=True)
class Stage:
    """The upstreams that a product stands before, and how patient it is with them."""

    folder: Path
    cases: Sequence[Case]  # the controls included
    heads: Mapping[str, str]  # addresses of the targets that fail, by the names of the cases
    tail: str
    seconds: float  # the timeout of each product


@dataclass(frozen=True, slots=True)
class Product:
    """Somebody who is judged."""

    name: str
    title: str
    version: str
    settings: str  # in words, for the page
    start: Start
    door: Callable[[Case], Door]


def ours(stage: Stage) -> Product:
    (port,) = free_ports(1)
    config = stage.folder / "understudy.toml"
    config.write_text(our_config(stage, port))
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    command = [sys.executable, "-m", "understudy.cli", "serve", "--config", str(config)]
    environment = {"PYTHONPATH": str(HERE.parent / "src")}
    start = Start(command, port, "/healthz", env=environment, patience=60.0)
    words = (
        "a chain of two; `connect_timeout`, `first_byte_timeout`, `idle_timeout` and "
        f"`response_timeout` {stage.seconds:g} s; else the defaults (`availability`, one retry)"
    )
    headers = {"authorization": f"Bearer {KEY}"}
    return Product(
        "ours",
        "Understudy",
        project["version"],
        words,
        start,
        lambda case: Door(port, case.name, headers),
    )


def our_config(stage: Stage, port: int) -> str:
    limits = "".join(
        f"{name} = {stage.seconds:g}\n"
        for name in (
            "connect_timeout",
            "first_byte_timeout",
            "idle_timeout",
            "response_timeout",
        )
    )

    def provider(name: str, dialect: str, address: str) -> str:
        url = address + {"openai": "/v1", "anthropic": ""}[dialect]
        return (
            f'[providers.{name}]\ndialect = "{dialect}"\nbase_url = "{url}"\n'
            f'api_key = "{UPSTREAM_KEY}"\n{limits}\n'
        )

    chains = "".join(
        f'{c.name} = "{c.name}/{c.name}, {c.dialect}-tail/{c.name}"\n' for c in stage.cases
    )
    tails = sorted({case.dialect for case in stage.cases})
    return (
        f'[gateway]\nport = {port}\nkeys = ["{KEY}"]\n\n'
        + "".join(provider(f"{dialect}-tail", dialect, stage.tail) for dialect in tails)
        + "".join(provider(c.name, c.dialect, stage.heads[c.name]) for c in stage.cases)
        + f"[aliases]\n{chains}"
    )


def litellm(stage: Stage) -> Product:
    peer = PEERS["litellm"]
    gateway_peers.set_up(peer)
    (port,) = free_ports(1)
    start = gateway_peers.litellm(
        port, dict.fromkeys(("live", "bulk", "paced", "dead"), port), stage.folder
    )
    # Started as for the speed figures, but with models of ours. JSON is YAML.
    (stage.folder / "litellm.yaml").write_text(json.dumps(litellm_config(stage)))
    words = (
        f"`router_settings.fallbacks` from one model to the other; `timeout` and `stream_timeout` "
        f"{stage.seconds:g} s at each model; else the defaults (two retries, cooldowns on)"
    )
    headers = {"authorization": f"Bearer {KEY}"}
    return Product(
        "litellm",
        "LiteLLM proxy",
        peer.version,
        words,
        start,
        lambda case: Door(port, case.name, headers),
    )


def litellm_config(stage: Stage) -> dict[str, object]:
    def model(name: str, case: Case, address: str) -> dict[str, object]:
        params = {
            "model": f"{case.dialect}/{case.name}",
            "api_base": address + {"openai": "/v1", "anthropic": ""}[case.dialect],
            "api_key": UPSTREAM_KEY,
            "timeout": stage.seconds,
            "stream_timeout": stage.seconds,
        }
        return {"model_name": name, "litellm_params": params}

    pairs = [
        (model(c.name, c, stage.heads[c.name]), model(f"{c.name}-tail", c, stage.tail))
        for c in stage.cases
    ]
    return {
        "model_list": [entry for pair in pairs for entry in pair],
        "router_settings": {"fallbacks": [{c.name: [f"{c.name}-tail"]} for c in stage.cases]},
        "litellm_settings": {"telemetry": False},
    }


def portkey(stage: Stage) -> Product:
    peer = PEERS["portkey"]
    gateway_peers.set_up(peer)
    (port,) = free_ports(1)
    words = (
        "a config with `strategy.mode` `fallback` and two targets; `request_timeout` "
        f"{stage.seconds:g} s; else the defaults (no retries)"
    )

    def door(case: Case) -> Door:
        config = json.dumps(portkey_config(stage, case), separators=(",", ":"))
        return Door(port, case.name, {"x-portkey-config": config})

    start = gateway_peers.portkey(port, stage.folder)
    return Product("portkey", "Portkey gateway", peer.version, words, start, door)


def portkey_config(stage: Stage, case: Case) -> dict[str, object]:
    targets = [
        {"provider": case.dialect, "api_key": UPSTREAM_KEY, "custom_host": f"{address}/v1"}
        for address in (stage.heads[case.name], stage.tail)
    ]
    return {
        "strategy": {"mode": "fallback"},
        "request_timeout": round(stage.seconds * 1000),
        "targets": targets,
    }


PRODUCTS: dict[str, Callable[[Stage], Product]] = {
    "ours": ours,
    "litellm": litellm,
    "portkey": portkey,
}
