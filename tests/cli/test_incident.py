"""One incident, told by everybody: error, plan, status, admin interface, live feed, log lines.

A head that died, an account that was refused, a rest that an operator ordered, a window that is
too small, and at last nobody left. Who is asked does not matter: the sentence is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.stage import aside, call
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup
from understudy.messages.capabilities import Capabilities
from understudy.testing import Fake, Http

CHAIN = "dead/m, locked/m, resting/m, big/m, small/m, large/m"
LONG = Http(400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}')
BENCHED = {
    "dead/m": "benched for transient, # s left of 5 s",
    "locked/m": "credential default benched for auth, # s left of 300 s",
    "resting/m": "benched by an operator, # s left of 600 s: a deploy",
    "large/m": "benched for transient, # s left of 5 s",
}
SMALL = "window 4,096 tokens, needs more than 8,192"
SKIPPED = {**BENCHED, "small/m": SMALL}
Told = dict[str, object]


def timeless(text: str) -> str:
    """The same moment is not asked twice: what is left of a bench differs, and only that."""
    return re.sub(r"[\d.]+ s left", "# s left", text)


@asynccontextmanager
async def playing(written: list[bytes]) -> AsyncIterator[str]:
    runtime = Runtime(Setup(None, "127.0.0.1", 0, {}), written.append)
    registry = runtime.gateway.house.registry
    windows = {"big": 8192, "small": 4096, "large": 100_000}
    scripts = {"dead": (503, 503), "locked": (401,), "big": (LONG, LONG), "large": (503, 503)}
    for name in ("dead", "locked", "resting", "big", "small", "large"):
        fake = Fake(name, capabilities=Capabilities(context_window=windows.get(name)))
        registry.register_provider(fake.script("m", *scripts.get(name, ())))
    registry.register_alias("tonight", CHAIN)
    port = await runtime.server.listen("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        runtime.gateway.draining = True  # so that the feed ends
        await runtime.server.close()
        runtime.lines.flush()


def asked(address: str) -> str:
    """What a client is told when nobody can answer."""
    body = {"model": "tonight", "messages": [{"role": "user", "content": "a long story"}]}
    head = {"content-type": "application/json"}
    asking = Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), head)
    with pytest.raises(HTTPError) as raised:
        urlopen(asking)
    with raised.value as answer:
        message = json.load(answer)["error"]["message"]
    assert isinstance(message, str)
    return message


def fetched(address: str, path: str) -> Told:
    with urlopen(f"{address}/understudy/api/{path}") as answer:
        told: Told = json.load(answer)
    return told


def events(address: str, *names: str) -> list[Told]:
    """The first event of each name that the dashboard reads."""
    found: dict[str, Told] = {}
    with urlopen(f"{address}/understudy/api/events") as answer:
        for line in answer:
            kind, _, rest = line.decode().strip().partition(": ")
            if kind == "event":
                name = rest
            elif kind == "data":
                found.setdefault(name, json.loads(rest))
            if found.keys() >= set(names):
                break
    return [found[name] for name in names]


def reasons(told: Told) -> dict[str, str]:
    """By target, of the keys in a picture of health."""
    keys = told["keys"]
    assert isinstance(keys, dict)
    return {key.removesuffix("#default"): timeless(row["reason"]) for key, row in keys.items()}


def skips(told: Told) -> dict[str, str]:
    """By target, of the newest request."""
    requests = told["requests"]
    assert isinstance(requests, list)
    newest = max(requests, key=lambda row: row["at"])
    found = (a for a in newest["attempts"] if a["outcome"] == "skipped")
    return {a["target"]: timeless(a["reason"]).removeprefix("skipped, ") for a in found}


def test_everybody_tells_one_incident_in_the_same_sentences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written: list[bytes] = []
    with aside(playing(written)) as address:
        at = ("--url", address)
        call(capsys, "bench", "resting/m", "--for", "10m", "--why", "a deploy", *at)
        asked(address)  # finds out
        error = asked(address)
        plan = timeless(call(capsys, "plan", "tonight", *at).out)
        status = timeless(call(capsys, "status", *at).out)
        health, attempts = fetched(address, "health"), fetched(address, "attempts?limit=1")
        hello, past = events(address, "hello", "past")
    lines = [json.loads(line) for line in b"".join(written).splitlines()]

    for target, sentence in SKIPPED.items():
        assert re.search(rf"{target}: (\w+: )?skipped, {re.escape(sentence)}", timeless(error)), (
            error
        )
    for target, sentence in BENCHED.items():
        assert re.search(rf"{target} +skip +{re.escape(sentence)}\n", plan), plan
        assert f"  {sentence}\n" in status
    assert reasons(health) == reasons(hello) == BENCHED
    assert skips(attempts) == skips(past) == SKIPPED
    ends = [line for line in lines if line["event"] in ("failover_abort", "request")]
    assert len(ends) == 4  # two requests, each with its end and its line
    for line in ends[2:]:
        said = line.get("error_snippet") or line["reason"]
        assert error.startswith(said.removesuffix("…"))
        assert "dead/m: transient: skipped, benched for transient" in said
