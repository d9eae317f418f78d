"""From configuration to house: who is built how, who may come in, what clients may tighten."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.gateway.desk import HELLO, Upstream, always, answer, serving
from tests.rig import run
from understudy.core.errors import InvalidRequest, SpecError
from understudy.core.faults import Fault
from understudy.core.policy import Then
from understudy.gateway.build import (
    demo_house,
    exposed,
    house_of,
    house_of_env,
)
from understudy.gateway.config import InvalidConfig, read_config
from understudy.gateway.house import House
from understudy.gateway.setup import Setup, open_house
from understudy.providers.http import HttpProvider
from understudy.providers.loopback import is_loopback
from understudy.testing import ManualClock

FILE = """
[gateway]
keys = ["sk-a", "sk-b"]
admin_key = "sk-admin"
rate = 5
max_concurrent = 2
[providers.one]
base_url = "https://one.example/v1/"
api_keys = ["k1", "k2"]
connect_timeout = 1
first_byte_timeout = 2
idle_timeout = 3
response_timeout = 4
max_reply = 5000
[providers.one.models.m]
context_window = 9000
image_types = ["image/png"]
[providers.openai]
[aliases]
chat = "one/m, openai/gpt"
brief = "one/m"
[policy]
transient_retries = 3
[policy.brief]
transient_retries = 0
"""


def built(
    text: str = FILE, env: Mapping[str, str] | None = None, old: House | None = None
) -> House:
    env = {"OPENAI_API_KEY": "sk-openai"} if env is None else env
    return house_of(read_config(text, env), env, ManualClock(), old)


def http(house: House, name: str) -> HttpProvider:
    provider = house.registry.providers[name]
    assert isinstance(provider, HttpProvider)
    return provider


def test_a_provider_is_made_as_its_table_says() -> None:
    one = http(built(), "one")
    assert (one.base_url, one.dialect.name) == ("https://one.example/v1", "openai")
    assert one.credentials == ("key1", "key2")
    assert (one.patience.first_byte, one.patience.idle, one.patience.response) == (2, 3, 4)
    assert (one.settings.limits.connect, one.settings.limits.max_reply) == (1, 5000)
    assert one.capabilities("m").context_window == 9000
    assert one.capabilities("m").image_types == ("image/png",)


def test_a_vendor_needs_no_more_than_its_name() -> None:
    openai = http(built(), "openai")
    assert openai.base_url == "https://api.openai.com/v1"
    assert openai.settings.missing == ""
    assert "OPENAI_API_KEY" in http(built(env={}), "openai").settings.missing


def test_a_key_of_the_environment_goes_to_the_vendors_own_address_only() -> None:
    text = '[providers.openai]\nbase_url = "https://elsewhere.example/v1"\n'
    house = built(text)
    assert house.recipes["openai"].keys == ()


def test_a_proxy_of_the_environment_is_used_and_a_bad_one_is_told() -> None:
    pytest.importorskip("aiohttp")
    proxied = built(env={"HTTPS_PROXY": "http://proxy.example:3128"})
    straight = built(env={"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "one.example"})
    assert type(http(proxied, "one").settings.transport).__name__ == "Proxied"
    assert type(http(straight, "one").settings.transport).__name__ == "Pool"
    with pytest.raises(InvalidConfig, match=r"providers\.one: HTTPS_PROXY must be"):
        built(env={"HTTPS_PROXY": "socks://proxy.example"})


def test_a_policy_may_differ_by_alias() -> None:
    house = built()
    assert house.cast("chat").stage.policy.transient_retries == 3
    assert house.cast("brief").stage.policy.transient_retries == 0
    assert house.cast("brief") is house.cast("brief")  # made once
    assert house.cast("one/m").stage.policy.transient_retries == 3


def test_a_client_may_ask_for_the_stricter_policy_and_never_for_the_laxer() -> None:
    house = built()
    assert house.cast("chat").stage.policy.rule(Fault.AUTH).then is Then.ADVANCE
    assert house.cast("chat", "availability").stage.policy.rule(Fault.AUTH).then is Then.ADVANCE
    strict = house.cast("chat", "fail_fast").stage.policy
    assert strict.rule(Fault.AUTH).then is Then.STOP
    assert strict.transient_retries == 3
    firm = built(FILE.replace("[gateway]", '[gateway]\npolicy = "fail_fast"'))
    lax = firm.cast("chat", "availability").stage.policy
    assert lax.rule(Fault.AUTH).then is Then.STOP


@pytest.mark.parametrize("wish", ["deterministic", "generous", "x" * 1000])
def test_an_unknown_policy_is_refused_by_name(wish: str) -> None:
    with pytest.raises(InvalidRequest, match=r"x-understudy-policy is .*; known: availability"):
        built().cast("chat", wish)


def test_chains_under_a_wished_policy_do_not_pile_up() -> None:
    house = built()
    for n in range(1100):
        house.cast(f"one/m{n}", "fail_fast")
    assert len(house._bent) <= 1024


def test_where_specs_are_not_allowed_only_aliases_are_known() -> None:
    house = built(FILE.replace("[gateway]", "[gateway]\nallow_specs = false"))
    assert house.cast("chat")
    for model in ("one/m", "chat, one/m", "nobody"):
        with pytest.raises(SpecError, match="the models here are: brief, chat"):
            house.cast(model)


def test_keys_are_told_apart_and_admin_is_no_client() -> None:
    house = built()
    found = [house.who(secret) for secret in ("sk-a", "sk-b", "sk-admin", "", "sk-é")]
    assert [key and key.label for key in found] == ["client1", "client2", None, None, None]
    assert [house.is_admin(s) for s in ("sk-admin", "sk-a", "", "é")] == [
        True,
        False,
        False,
        False,
    ]
    assert not House(house.registry).is_admin("")
    assert "sk-" not in repr(house)


@pytest.mark.parametrize(
    ("host", "inside"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil.example", False),
        ("", False),
    ],
)  # fmt: skip
def test_without_keys_only_loopback_may_be_listened_on(host: str, inside: bool) -> None:
    assert is_loopback(host) is inside
    assert (exposed(host, ()) == []) is inside
    assert exposed(host, ("key",)) == []


def test_the_command_line_cannot_open_a_gateway_without_keys_either() -> None:
    with pytest.raises(InvalidConfig, match=r"needed to listen on 0\.0\.0\.0"):
        open_house(Setup(host="0.0.0.0"))
    opened = open_house(Setup(port=0))
    assert (opened.host, opened.kind) == ("127.0.0.1", "demo")


def test_without_a_file_the_environment_makes_the_house() -> None:
    clock = ManualClock()
    assert house_of_env({}, clock) is None
    house = house_of_env({"ANTHROPIC_API_KEY": "k"}, clock)
    assert house is not None
    assert house.cast("anthropic/claude-x").stage.policy.name == "availability"
    lazy = house_of_env({"LLM_BOX": "ollama://localhost:9"}, clock)
    assert lazy is not None
    assert "box" in lazy.registry.providers


def test_the_demo_fails_over_for_every_visitor() -> None:
    house = demo_house(ManualClock())
    model = house.registry.parse("demo")

    async def visit() -> list[str]:
        return [(await model.generate("hello")).model for _ in range(2)]

    served = asyncio.run(visit())
    assert "understudy/aria" in served


# -- reloading


def test_a_provider_that_did_not_change_is_kept_with_its_connections() -> None:
    old = built()
    same = built(old=old)
    assert http(same, "one") is http(old, "one")
    assert http(same, "openai") is http(old, "openai")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one.example", "uno.example"),
        ('"k2"', '"k4"'),
        ("idle_timeout = 3", "idle_timeout = 30"),
        ("context_window = 9000", "context_window = 90"),
        ("max_reply = 5000", "max_reply = 5001"),
    ],
)
def test_a_provider_that_changed_is_made_anew(before: str, after: str) -> None:
    old = built()
    new = built(FILE.replace(before, after), old=old)
    assert http(new, "one") is not http(old, "one")
    assert http(new, "openai") is http(old, "openai")


def test_a_provider_of_the_environment_is_kept_until_a_file_claims_its_name() -> None:
    env = {"LLM_BOX": "ollama://localhost:9"}
    old = built("", env)
    assert http(built("", env, old), "box") is http(old, "box")
    claimed = built('[providers.box]\nbase_url = "http://localhost:8"\n', env, old)
    assert http(claimed, "box").base_url == "http://localhost:8"
    back = built("", env, claimed)
    assert http(back, "box").base_url == "http://localhost:9"


def test_limits_go_on_where_they_were_for_keys_that_stay() -> None:
    old = built()
    assert old.gates["client2"].enter() is None
    swapped = built(FILE.replace('["sk-a", "sk-b"]', '["sk-b", "sk-new"]'), old=old)
    assert swapped.gates["client1"] is old.gates["client2"]
    assert swapped.gates["client2"].inside == 0
    changed = built(FILE.replace("rate = 5", "rate = 6"), old=old)
    assert changed.gates["client2"] is not old.gates["client2"]


def test_the_last_request_out_of_a_replaced_house_is_told() -> None:
    house = built()
    told: list[str] = []
    house.running = 2
    house.emptied = lambda: told.append("empty")
    house.leave()
    assert told == []
    house.leave()
    assert told == ["empty"]


def test_a_provider_of_a_demo_is_no_http_provider_and_its_vendor_is_its_name() -> None:
    house = demo_house(ManualClock())
    assert house.vendor("lead") == "lead"
    assert built().vendor("openai") == "openai"


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"LLM_BOX": "llama-swap://HOST"}, ""),
        ({"LLM_BOX": "llama-swap://HOST/v1"}, ""),
        ({"LLM_BOX": "vllm://HOST"}, ""),
        ({}, '[providers.box]\nvendor = "lmstudio"\nbase_url = "http://HOST"\n'),
    ],
)
def test_a_server_of_ones_own_is_asked_where_such_servers_answer(
    env: Mapping[str, str], text: str
) -> None:
    async def work() -> list[str]:
        async with Upstream(always(answer())) as up:
            host = up.url.removeprefix("http://")
            here = {name: value.replace("HOST", host) for name, value in env.items()}
            async with serving(text.replace("HOST", host), env=here) as served:
                await served.ask("POST", "/v1/chat/completions", {**HELLO, "model": "box/m"})
                body = {"model": "box/m", "input": "hi"}
                await served.ask("POST", "/v1/embeddings", body)
            return [asked.path for asked in up.asked]

    assert run(work())[:2] == ["/v1/chat/completions", "/v1/embeddings"]


@pytest.mark.parametrize(
    ("env", "model", "why"),
    [
        ({"LLM_BAD": "nope://sk-planted@x"}, "bad/m", "unknown scheme 'nope' in LLM_BAD"),
        ({"OLLAMA_HOST": "http://h:99999"}, "ollama/m", "a base URL that cannot be read"),
        (
            {"OPENAI_API_KEY": "k", "HTTPS_PROXY": "socks5://u:sk-planted@h"},
            "openai/m",
            "HTTPS_PROXY must be http://",
        ),
    ],
)
def test_a_provider_that_cannot_be_made_is_told_of_by_name_and_is_no_fault_of_ours(
    env: Mapping[str, str], model: str, why: str
) -> None:
    async def work() -> None:
        async with serving("", env=env) as served:
            heard = await served.ask("POST", "/v1/chat/completions", {**HELLO, "model": model})
            assert heard.status == 400
            assert str(heard.error["message"]).startswith(f"$.model: {why}")
            plan = await served.ask("GET", f"/understudy/api/plan?model={model}")
            assert plan.status == 400
            assert why in str(plan.error["message"])
            assert served.events("internal_error") == []
            assert b"sk-planted" not in heard.body + plan.body

    run(work())
