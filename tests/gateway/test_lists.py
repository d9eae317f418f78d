"""Lists of models, in the shapes the official SDKs read."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.desk import Heard, aliases, provider, serving
from tests.rig import run

LISTED = ["chat", "brief", "p/a", "q/b/c"]
MODELS = aliases(chat="p/a, q/b/c", brief="p/a")


def with_models() -> str:
    there = "http://127.0.0.1:1"
    return provider("p", there) + provider("q", there) + MODELS


@pytest.mark.parametrize(
    ("path", "headers", "rows", "name"),
    [
        ("/v1/models", {}, "data", "id"),
        ("/models", {}, "data", "id"),
        ("/v1/models?limit=20", {"anthropic-version": "2023-06-01"}, "data", "id"),
        ("/v1beta/models?pageSize=50", {"x-goog-api-key": "k"}, "models", "displayName"),
    ],
)
def test_aliases_and_their_targets_are_listed(
    path: str, headers: dict[str, str], rows: str, name: str
) -> None:
    async def work() -> Heard:
        async with serving(with_models()) as served:
            return await served.ask("GET", path, None, headers)

    heard = run(work())
    found = heard.json[rows]
    assert isinstance(found, list)
    assert [row[name] for row in found] == LISTED


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/models/chat", {}, 200),
        ("/v1/models/q/b/c", {}, 200),
        ("/v1/models/q%2Fb%2Fc", {}, 200),
        ("/v1/models/nobody", {}, 404),
        ("/v1/models/chat", {"anthropic-version": "2023-06-01"}, 200),
        ("/v1beta/models/chat", {}, 200),
        ("/v1beta/models/nobody", {}, 404),
    ],
)
def test_one_model_can_be_asked_for(path: str, headers: dict[str, str], status: int) -> None:
    async def work() -> Heard:
        async with serving(with_models()) as served:
            return await served.ask("GET", path, None, headers)

    heard = run(work())
    assert heard.status == status
    assert heard.headers["x-request-id"]


def test_a_list_needs_a_key_where_requests_do() -> None:
    async def work() -> list[Heard]:
        async with serving('[gateway]\nkeys = ["sk-good"]\n' + with_models()) as served:
            return [
                await served.ask("GET", "/v1/models", None, headers)
                for headers in (
                    {},
                    {"anthropic-version": "x", "x-api-key": "sk-bad"},
                    {"authorization": "Bearer sk-good"},
                )
            ]

    plain, claude, good = run(work())
    assert [h.status for h in (plain, claude, good)] == [401, 401, 200]
    assert claude.json["type"] == "error"


def test_the_sdks_read_our_lists() -> None:
    openai = pytest.importorskip("openai")
    anthropic = pytest.importorskip("anthropic")
    genai = pytest.importorskip("google.genai")

    def asked(address: str) -> list[list[str]]:
        with openai.OpenAI(base_url=f"{address}/v1", api_key="sk-good") as o:
            one = [model.id for model in o.models.list()]
            assert o.models.retrieve("chat").id == "chat"
        with anthropic.Anthropic(base_url=address, api_key="sk-good") as a:
            two = [model.id for model in a.models.list()]
            assert a.models.retrieve("chat").display_name == "chat"
        options = genai.types.HttpOptions(base_url=address)
        client = genai.Client(api_key="sk-good", http_options=options)
        three = [str(model.name) for model in client.models.list()]
        assert client.models.get(model="chat").display_name == "chat"
        client.close()
        return [one, two, three]

    async def work() -> list[list[str]]:
        async with serving('[gateway]\nkeys = ["sk-good"]\n' + with_models()) as served:
            return await asyncio.to_thread(asked, served.address)

    one, two, three = run(work())
    assert one == two == LISTED
    assert three == [f"models/{name}" for name in LISTED]
