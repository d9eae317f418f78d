"""SDKs retry by default; an answer that a whole chain stands behind tells them not to (C17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.clients import speak_anthropic, speak_openai
from tests.clients.rig import KEY, Backstage, Setting, served, staged
from understudy.gateway.http import Reply, Request

DEFAULT = 2  # what both SDKs do unless told otherwise


def chat(address: str) -> None:
    with speak_openai.client(address, KEY, DEFAULT) as sdk:
        sdk.chat.completions.create(model="chat", messages=speak_openai.ASK)


def responses(address: str) -> None:
    with speak_openai.client(address, KEY, DEFAULT) as sdk:
        sdk.responses.create(model="chat", input="hello")


def messages(address: str) -> None:
    with speak_anthropic.client(address, KEY, DEFAULT) as sdk:
        sdk.messages.create(model="chat", max_tokens=9, messages=speak_anthropic.ASK)


CLIENTS: dict[str, tuple[str, Callable[[str], None]]] = {
    "openai": ("openai", chat),
    "responses": ("openai", responses),
    "anthropic": ("anthropic", messages),
}


@dataclass
class Plain503:
    """A server that is down and says nothing about retrying."""

    calls: list[str] = field(default_factory=list)

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.calls.append(request.path)
        reply.send(503, b"retry-after-ms: 1\r\ncontent-type: application/json\r\n", b"{}")


@pytest.mark.parametrize("name", CLIENTS)
def test_an_exhausted_chain_is_asked_once_though_the_sdk_would_retry(
    backstage: Backstage, name: str
) -> None:
    package, ask = CLIENTS[name]
    sdk = pytest.importorskip(package)
    with staged(backstage, Setting(name, "503")) as scene:
        scene.fake.script("x", *[503] * 9)
        with pytest.raises(sdk.InternalServerError) as caught:
            ask(scene.address)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert int(caught.value.response.headers["retry-after"]) >= 1
        assert len(scene.finished()) == 1
        assert (len(scene.head.calls), len(scene.fake.calls)) == (2, 2)


@pytest.mark.parametrize("name", CLIENTS)
def test_without_that_header_it_does_retry(backstage: Backstage, name: str) -> None:
    package, ask = CLIENTS[name]
    sdk = pytest.importorskip(package)
    server = Plain503()
    with backstage.held(served(server)) as address, pytest.raises(sdk.InternalServerError):
        ask(address)
    assert len(server.calls) == 1 + DEFAULT
