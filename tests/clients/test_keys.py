"""Keys where the SDKs put them (contract G7): Bearer, x-api-key, x-goog-api-key, `?key=`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping

import pytest

from tests.clients.rig import KEY, Backstage, Setting, staged
from tests.clients.speak_anthropic import ASK, text_of
from understudy.gateway.http import Reply, Request

OTHERS = "sk-ant-somebody-elses-key"


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": KEY},
        {"auth_token": KEY},
        {"auth_token": KEY, "default_headers": {"x-api-key": OTHERS}},
    ],
    ids=["x-api-key", "bearer", "both, the bearer ours"],
)
def test_the_anthropic_sdk_may_send_its_key_either_way(
    backstage: Backstage, given: dict[str, object]
) -> None:
    anthropic = pytest.importorskip("anthropic")
    with (
        staged(backstage, Setting("anthropic")) as scene,
        anthropic.Anthropic(base_url=scene.address, max_retries=0, **given) as sdk,
    ):
        answer = sdk.messages.create(model="chat", max_tokens=9, messages=ASK)
        assert text_of(answer) == "hello from f/x"
        assert [record.opening.key for record in scene.finished()] == ["tests"]


@pytest.mark.parametrize(("key", "status"), [(KEY, 200), ("wrong", 401), ("", 401)])
def test_gemini_clients_may_put_the_key_into_the_url(
    backstage: Backstage, key: str, status: int
) -> None:
    with staged(backstage, Setting("gemini")) as scene:
        ask = urllib.request.Request(
            f"{scene.address}/v1beta/models/chat:generateContent?key={key}",
            data=b'{"contents":[{"parts":[{"text":"hello"}]}]}',
            headers={"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(ask) as answer:
                got, body = answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                got, body = error.code, json.load(error)
        assert got == status
        assert ("candidates" if status == 200 else "error") in body


def test_no_client_key_reaches_the_provider(backstage: Backstage) -> None:
    """The far gateway asks for no key; what it is sent is the provider's, not the client's."""
    openai = pytest.importorskip("openai")
    heads: list[Mapping[bytes, bytes]] = []

    async def far(request: Request, reply: Reply) -> None:
        heads.append(request.head.headers)
        reply.send(200, b"content-type: application/json\r\n", ANSWER)

    with (
        staged(backstage, Setting("openai", far=far)) as scene,
        openai.OpenAI(base_url=scene.address + "/v1", api_key=KEY, max_retries=0) as sdk,
    ):
        sdk.chat.completions.create(model="chat", messages=ASK)
    (sent,) = heads
    assert sent[b"authorization"] == b"Bearer k-0123456789"
    assert KEY.encode() not in b"".join(sent.values())
    assert not [name for name in sent if name.startswith(b"x-stainless")]


ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
).encode()
