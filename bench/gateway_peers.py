"""The other gateways: set up on demand under `.bench/`, in pinned versions, and how they start.

python bench/gateway_peers.py          set both up and say what is there
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from peers import HOME, Missing
from processes import HERE, Start
from table import say

LITELLM = "litellm[proxy]==1.106.2"
PORTKEY = "@portkey-ai/gateway@1.15.2"
# With the newer releases that its ranges allow, every stream of it fails; its lockfile has these.
PORTKEY_NEEDS = {"hono": "4.9.7", "@hono/node-server": "1.13.5"}
KEY = "sk-bench-0123456789abcdef"
SLOW = 120.0  # seconds that a peer may take to start


@dataclass(frozen=True, slots=True)
class Peer:
    """One product: what is installed, where, and how."""

    name: str
    wanted: str  # package and version
    folder: Path
    commands: Callable[[Path], Sequence[Sequence[str]]]

    @property
    def version(self) -> str:
        return self.wanted.rpartition("==")[2].rpartition("@")[2]


def _litellm_commands(folder: Path) -> Sequence[Sequence[str]]:
    python = str(folder / "bin" / "python")
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    return ((sys.executable, "-m", "venv", str(folder)), (*pip, LITELLM))


def _portkey_commands(folder: Path) -> Sequence[Sequence[str]]:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise Missing("Node and npm are not installed")
    name, _, release = PORTKEY.rpartition("@")
    package = {"private": True, "dependencies": {name: release}, "overrides": PORTKEY_NEEDS}
    (folder / "package.json").write_text(json.dumps(package, indent=1))
    quiet = ("--no-audit", "--no-fund", "--loglevel", "error")
    return ((npm, "install", *quiet, "--prefix", str(folder)),)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("litellm", LITELLM, HOME / "litellm-proxy", _litellm_commands),
        Peer("portkey", PORTKEY, HOME / "portkey", _portkey_commands),
    )
}


def set_up(peer: Peer) -> None:
    """Install it, unless it is there in this version; raises Missing."""
    stamp = peer.folder / "installed"
    if stamp.is_file() and stamp.read_text() == peer.wanted:
        return
    peer.folder.mkdir(parents=True, exist_ok=True)
    for command in peer.commands(peer.folder):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            raise Missing(_why(error)) from error
    stamp.write_text(peer.wanted)


def _why(error: Exception) -> str:
    said = str(error.stderr or "") if isinstance(error, subprocess.CalledProcessError) else ""
    lines = [line for line in said.splitlines() if "error" in line.lower()]
    return lines[-1][:200] if lines else str(error).partition("\n")[0][:200]


def litellm(port: int, upstreams: Mapping[str, int], folder: Path) -> Start:
    """The proxy with one worker, a master key and no database."""
    config = folder / "litellm.yaml"
    template = Template((HERE / "litellm.yaml.template").read_text())
    config.write_text(template.substitute({k: str(v) for k, v in upstreams.items()}))
    binary = str(PEERS["litellm"].folder / "bin" / "litellm")
    command = [binary, "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "LITELLM_MASTER_KEY": KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
    }
    return Start(
        [*command, "--num_workers", "1"],
        port,
        "/health/liveliness",
        env=environment,
        folder=folder,
        patience=SLOW,
    )


def portkey(port: int, folder: Path) -> Start:
    """The server without its console; targets are named by a header of each request."""
    module = PEERS["portkey"].folder / "node_modules" / "@portkey-ai" / "gateway"
    node = shutil.which("node") or "node"
    command = [node, str(module / "build" / "start-server.js"), f"--port={port}", "--headless"]
    return Start(command, port, env={"NODE_ENV": "production"}, folder=folder, patience=SLOW)


def portkey_header(*targets: tuple[str, int]) -> str:
    """The header that names targets as (provider, upstream port), in order."""
    listed = [
        {
            "provider": provider,
            "api_key": "sk-upstream",
            "custom_host": f"http://127.0.0.1:{port}/v1",
        }
        for provider, port in targets
    ]
    several = {"strategy": {"mode": "fallback"}, "targets": listed}
    config = listed[0] if len(listed) == 1 else several
    return f"x-portkey-config: {json.dumps(config, separators=(',', ':'))}"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    for peer in PEERS.values():
        try:
            set_up(peer)
        except Missing as error:
            say(f"{peer.name}: skipped: {error}")
        else:
            say(f"{peer.name}: {peer.version} is set up in {peer.folder.name}")


if __name__ == "__main__":
    main()
