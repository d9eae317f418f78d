"""Schemathesis reads the document a gateway serves and holds the gateway to it.

It makes requests of its own from the document, right and wrong ones, with keys and without. The
models behind the gateway are played: one is asked over neutral types, one is relayed to, one
knows vectors and token counts, and one is no model at all.
"""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tests.clients.rig import KEY, Backstage, served
from tests.judges.player import Player
from tests.judges.rig import LONG, tool
from tests.served import house, listening, provider
from understudy.gateway.house import ClientKey
from understudy.gateway.http import Reply, Request
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup

ADMIN = "admin-key-0123456789"
MODELS = ["played", "relayed", "counting", "nobody"]
SETTINGS = f"""
[checks.not_a_server_error]
# Nobody can answer, or not in time: these are answers too. 500 and 502 are not.
expected-statuses = ["2xx", "3xx", "4xx", "503", "504"]
[auth.openapi.bearer]
bearer = "{KEY}"
[auth.openapi.admin]
bearer = "{ADMIN}"
"""
# Right by the schema is not yet right: whether a conversation makes sense is no matter of types.
LEFT_OUT = "positive_data_acceptance"
# What does not end while somebody listens; and second names of what is asked anyway.
PATHS_LEFT_OUT = "events$|^/(chat|responses|embeddings|models|v1alpha)|^/v1/models/.*:"


async def counts(request: Request, reply: Reply) -> None:
    """Vectors and token counts, for whoever asks."""
    vector = {"object": "embedding", "index": 0, "embedding": [0.25]}
    vectors = {"object": "list", "data": [vector], "usage": {"prompt_tokens": 1}}
    told = {"input_tokens": 3} if "count" in request.path else vectors
    reply.send(200, b"content-type: application/json\r\n", json.dumps(told).encode())


@asynccontextmanager
async def opened() -> AsyncIterator[str]:
    """A whole gateway with keys, as `serve` starts it, over these models."""
    async with AsyncExitStack() as stack:
        far = await stack.enter_async_context(listening(house(Player("p"), m="p/x")))
        near = await stack.enter_async_context(served(counts))
        relay = provider("openai", far, "relay")
        vectors, tokens = (
            provider("openai", near, "vectors"),
            provider("anthropic", near, "tokens"),
        )
        for each in (relay, vectors, tokens):
            stack.push_async_callback(each.aclose)
        runtime = Runtime(Setup(env={}), lambda line: None)
        open_house = house(
            Player("stage"), relay, vectors, tokens,
            played="stage/x", relayed="relay/m", counting="vectors/m, tokens/m",
        )  # fmt: skip
        keys = (ClientKey("judge", KEY),)
        runtime.gateway.house = replace(open_house, keys=keys, admin_key=ADMIN)
        port = await runtime.server.listen("127.0.0.1", 0)
        stack.push_async_callback(runtime.server.close)
        yield f"http://127.0.0.1:{port}"


def document(address: str) -> dict[str, object]:
    """As it is served, but for the names of models, which only a configuration knows."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=LONG)
    connection.request("GET", "/understudy/openapi.json")
    found = json.loads(connection.getresponse().read())
    connection.close()
    found["components"]["schemas"]["ModelName"] = {"type": "string", "enum": MODELS}
    return found


def test_the_gateway_keeps_to_the_document_it_serves(backstage: Backstage, tmp_path: Path) -> None:
    judge = tool("st")
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    with backstage.held(opened()) as address:
        (tmp_path / "openapi.json").write_text(json.dumps(document(address)))
        options = f"--url {address} --exclude-checks {LEFT_OUT}"
        bounds = "--max-examples 4 --seed 7 --phases examples,coverage,fuzzing"
        done = subprocess.run(
            [
                judge,
                "--no-color",
                "run",
                "openapi.json",
                *options.split(),
                *bounds.split(),
                "--exclude-path-regex",
                PATHS_LEFT_OUT,
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
