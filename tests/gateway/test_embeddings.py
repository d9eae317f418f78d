"""Embeddings and token counts over chains: passed on as they are, or to somebody else."""

from __future__ import annotations

import json

import pytest

from tests.gateway.desk import (
    Asked,
    Heard,
    Plays,
    Upstream,
    aliases,
    in_turn,
    provider,
    says,
    serving,
)
from tests.rig import run

VECTORS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -1.0], "odd": {"kept": 1}}],
    "model": "e",
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}
GIVEN = {"model": "embed", "input": ["a", "b"], "dimensions": 2, "x-unknown": {"a": [1]}}
COUNT = {"model": "count", "messages": [{"role": "user", "content": "hello"}]}


def played(value: object) -> Plays:
    return Plays(200, json.dumps(value).encode())


def embedded(*plays: Plays) -> tuple[Heard, list[Asked], list[str]]:
    """Ask a chain of an anthropic, a scripted and a healthy openai target for vectors."""

    async def work() -> tuple[Heard, list[Asked], list[str]]:
        async with Upstream(in_turn(*plays)) as first, Upstream(lambda _: played(VECTORS)) as last:
            text = (
                provider("claude", first.url, "anthropic")
                + provider("one", first.url)
                + provider("two", last.url)
                + aliases(embed="claude/c, one/e-1, two/e-2")
            )
            async with serving(text) as served:
                heard = await served.ask("POST", "/v1/embeddings", GIVEN)
                surfaces = [str(line["surface"]) for line in served.events("request")]
            return heard, [*first.asked, *last.asked], surfaces

    return run(work())


def test_vectors_come_back_byte_for_byte_and_only_the_model_changes() -> None:
    heard, asked, surfaces = embedded(played(VECTORS))
    assert heard.json == VECTORS
    assert [(a.path, a.json) for a in asked] == [("/v1/embeddings", {**GIVEN, "model": "e-1"})]
    assert asked[0].headers["authorization"] == "Bearer k-provider"
    assert heard.headers["x-understudy-target"] == "one/e-1"
    assert heard.headers["x-understudy-attempts"] == "claude/c=unsupported, one/e-1=ok"
    assert surfaces == ["embeddings"]


@pytest.mark.parametrize(
    ("plays", "fault"),
    [
        (says(503), "transient, one/e-1=transient"),
        (says(404, "The model `e-1` does not exist"), "model_not_found"),
        (Plays(200, b"<html>busy</html>"), "transient, one/e-1=transient"),
        (played({"object": "list", "data": [], "usage": {"prompt_tokens": 1}}), "empty_content"),
        (played({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}),
         "rate_limit"),
    ],
)  # fmt: skip
def test_what_is_no_vector_fails_over(plays: Plays, fault: str) -> None:
    heard, asked, _ = embedded(plays)
    assert heard.json == VECTORS
    told = f"claude/c=unsupported, one/e-1={fault}, two/e-2=ok"
    assert heard.headers["x-understudy-attempts"] == told
    assert asked[-1].json["model"] == "e-2"


def test_a_chain_without_any_openai_target_says_so_and_benches_nobody() -> None:
    async def work() -> tuple[Heard, Heard]:
        async with Upstream(lambda _: says(500)) as up:
            text = provider("claude", up.url, "anthropic") + aliases(embed="claude/c")
            async with serving(text) as served:
                heard = await served.ask("POST", "/v1/embeddings", GIVEN)
                assert up.asked == []
                return heard, await served.ask("GET", "/understudy/api/health")

    heard, health = run(work())
    assert heard.status == 503
    assert "embeddings needs a target that speaks openai" in str(heard.error["message"])
    assert health.json["keys"] == {}


def test_tokens_are_counted_by_the_first_target_that_can() -> None:
    async def work() -> None:
        async with Upstream(lambda _: played({"input_tokens": 11})) as up:
            text = (
                provider("gpt", up.url)
                + provider("claude", up.url, "anthropic", "k-claude")
                + aliases(count="gpt/g, claude/c")
            )
            async with serving(text) as served:
                heard = await served.ask("POST", "/v1/messages/count_tokens", COUNT)
                metrics = (await served.ask("GET", "/metrics")).body.decode()
            assert heard.json == {"input_tokens": 11}
            assert heard.headers["x-understudy-attempts"] == "gpt/g=unsupported, claude/c=ok"
            [asked] = up.asked
            assert (asked.path, asked.json) == (
                "/v1/messages/count_tokens",
                {**COUNT, "model": "c"},
            )
            assert asked.headers["x-api-key"] == "k-claude"
            assert 'understudy_tokens_total{target="claude/c"' not in metrics  # counted, not used

    run(work())


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/embeddings", {"input": "a"}, "$.model"),
        ("/v1/embeddings", b"{", "not JSON"),
        ("/v1/embeddings", {"model": "nobody", "input": "a"}, "$.model"),
        ("/v1/messages/count_tokens", {"messages": []}, "$.model"),
    ],
)
def test_a_bad_request_is_a_400_that_names_the_field(path: str, body: object, field: str) -> None:
    async def work() -> Heard:
        async with serving(aliases(embed="openai/x")) as served:
            return await served.ask("POST", path, body)

    heard = run(work())
    assert heard.status == 400
    assert field in str(heard.error["message"])
    assert heard.json.get("type") == ("error" if "messages" in path else None)
