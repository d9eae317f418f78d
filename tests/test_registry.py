"""Names, aliases, resolvers and the environment (contract S8-S12, E1-E7)."""

from __future__ import annotations

import threading

import pytest

from tests.rig import run
from understudy import (
    AliasCycle,
    InvalidDSN,
    ProviderError,
    Registry,
    SpecError,
    UnknownAlias,
    UnknownProvider,
    default_registry,
    parse,
)
from understudy.providers.base import Provider
from understudy.providers.dsn import DSN, read_dsn, variable_for
from understudy.providers.http import HttpProvider
from understudy.testing import Fake


def registry(**env: str) -> Registry:
    made = Registry(env=env)
    made.register_provider(Fake("p"))
    return made


def address(reg: Registry, name: str) -> str:
    reg.parse(f"{name}/x")
    provider = reg.providers[name]
    assert isinstance(provider, HttpProvider)
    return provider.base_url


def test_targets_print_as_provider_and_model() -> None:
    reg = registry()
    reg.register_alias("thinking", "p/a, q/b")
    reg.register_provider("q", Fake("anything"))
    assert reg.parse("p/z, thinking").targets == ("p/z", "p/a", "q/b")


def test_a_spec_is_parsed_once_and_again_after_a_registration() -> None:
    reg = registry()
    first = reg.parse("p/a")
    assert reg.parse("p/a") is first
    reg.register_alias("x", "p/b")
    assert reg.parse("p/a") is not first


def test_an_unknown_provider_names_both_places_it_was_looked_for() -> None:
    with pytest.raises(UnknownProvider) as caught:
        registry().parse("p/a, my-prov/x")
    assert "'my-prov'" in str(caught.value)
    assert "not registered" in str(caught.value)
    assert "LLM_MY_PROV is not set" in str(caught.value)


def test_static_aliases_win_over_resolvers_and_the_first_resolver_wins() -> None:
    reg = registry()
    asked: list[str] = []

    def resolver(answer: str | None):  # type: ignore[no-untyped-def]
        def ask(name: str) -> str | None:
            asked.append(f"{answer}?{name}")
            return answer

        return ask

    reg.register_alias("static", "p/s")
    reg.register_resolver(resolver(None))
    reg.register_resolver(resolver("p/1, static"))
    reg.register_resolver(resolver("p/2"))
    assert reg.parse("static").targets == ("p/s",)
    assert asked == []
    assert reg.parse("tier").targets == ("p/1", "p/s")
    assert asked == ["None?tier", "p/1, static?tier"]


def test_a_resolver_is_asked_again_each_time() -> None:
    reg = registry()
    answers = iter(["p/1", "p/2"])
    reg.register_resolver(lambda name: next(answers))
    assert [reg.parse("tier").targets for _ in range(2)] == [("p/1",), ("p/2",)]


def test_a_resolver_may_use_the_registry() -> None:
    reg = registry()

    def resolver(name: str) -> str | None:
        reg.register_alias("late", "p/late")
        return ", ".join(reg.parse("p/inner").targets) + ", late"

    reg.register_resolver(resolver)
    assert reg.parse("tier").targets == ("p/inner", "p/late")


def test_a_cycle_through_resolvers_is_found() -> None:
    reg = registry()
    reg.register_resolver(lambda name: {"a": "b", "b": "a"}.get(name))
    with pytest.raises(AliasCycle, match="a -> b -> a"):
        reg.parse("a")


def test_two_registries_share_nothing() -> None:
    one, two = registry(), registry()
    one.register_alias("x", "p/a")
    one.health.bench("p/a", 9)
    assert two.health.available("p/a")
    with pytest.raises(UnknownAlias):
        two.parse("x")


def test_the_default_registry_is_built_on_first_use() -> None:
    default_registry().register_provider(Fake("p"))
    assert parse("p/a").targets == ("p/a",)
    assert default_registry() is default_registry()


@pytest.mark.parametrize("name", ["", "a/b", "a,b", " a"])
def test_a_provider_no_spec_could_reach_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="bad provider name"):
        registry().register_provider(name, Fake("p"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foreman://tok@host", DSN("foreman", "host", "tok")),
        ("foreman://host", DSN("foreman", "host", "")),
        ("s://t@h:8443/p/", DSN("s", "h:8443/p", "t")),
        ("s://a@b@c", DSN("s", "b@c", "a")),
        ("s://t%40@h//", DSN("s", "h", "t%40")),
    ],
)
def test_a_dsn_is_split_plainly(text: str, expected: DSN) -> None:
    assert read_dsn(text, "LLM_X") == expected


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("foreman", "there is no '://'"),
        ("://host", "the scheme is missing"),
        ("s://", "the host is missing"),
        ("s://secret@", "the host is missing"),
        ("s://secret@/", "the host is missing"),
        ("s:///path", "the host is missing"),
    ],
)
def test_a_bad_dsn_says_what_is_wrong_and_never_its_token(text: str, wrong: str) -> None:
    with pytest.raises(InvalidDSN) as caught:
        read_dsn(text, "LLM_X")
    assert wrong in str(caught.value)
    assert "LLM_X" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("dsn", "url"),
    [
        ("foreman://tok@host", "https://host"),
        ("openai://tok@host:8443/v1/", "https://host:8443/v1"),
        ("llama-swap://host:1234", "http://host:1234"),
        ("llama-swaps://host:1234", "https://host:1234"),
        ("ollama://localhost:11434", "http://localhost:11434"),
        ("ollama://127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("ollama://box.example.com", "https://box.example.com"),
        ("groq://k@host", "https://host"),
        ("vllm://localhost:8000/v1", "http://localhost:8000/v1"),
        ("foreman://a@b@c", "https://b@c"),
    ],
)
def test_the_base_url_follows_the_scheme(dsn: str, url: str) -> None:
    assert address(registry(LLM_M5=dsn), "m5") == url


def test_variables_define_providers_eagerly_with_underscores_kept() -> None:
    assert "my_box" in registry(LLM_MY_BOX="foreman://t@h").providers


def test_a_dash_is_found_lazily_and_then_cached() -> None:
    env = {"LLM_MY_PROV": "foreman://t@first"}
    reg = Registry(env=env)
    assert address(reg, "my-prov") == "https://first"
    env["LLM_MY_PROV"] = "foreman://t@second"
    assert address(reg, "my-prov") == "https://first"


def test_a_variable_set_after_construction_is_found_lazily() -> None:
    env: dict[str, str] = {}
    reg = Registry(env=env)
    env["LLM_LATE"] = "foreman://t@late"
    assert address(reg, "late") == "https://late"


def test_malformed_variables_harm_nobody_until_their_name_is_used() -> None:
    reg = registry(LLM_BAD="nonsense", LLM_TIMEOUT="30", LLM_ODD="warp://h", LLM_OK="ollama://h")
    assert reg.parse("ok/x").targets == ("ok/x",)
    with pytest.raises(InvalidDSN, match="LLM_BAD"):
        reg.parse("p/a, bad/x")
    with pytest.raises(InvalidDSN, match=r"unknown scheme 'warp' in LLM_ODD; known: .*foreman"):
        reg.parse("odd/x")


def test_load_env_returns_every_problem_and_loads_the_rest() -> None:
    reg = registry()
    problems = reg.load_env({"LLM_B": "x", "LLM_A": "s://", "LLM_C": "foreman://t@h", "PATH": "/"})
    assert [str(p).split(":")[0] for p in problems] == [
        "invalid DSN in LLM_A",
        "invalid DSN in LLM_B",
    ]
    assert "c" in reg.providers


def test_a_scheme_of_ones_own_is_usable_from_the_environment() -> None:
    built: list[DSN] = []

    def build(name: str, dsn: DSN) -> Provider:
        built.append(dsn)
        return Fake(name)

    reg = Registry(env={"LLM_MINE": "warp://tok@there"})
    reg.register_scheme("warp", build)
    assert run(reg.parse("mine/x").generate("hi")).text == "hello from mine/x"
    assert built == [DSN("warp", "there", "tok")]


def test_environment_providers_work_in_chains_and_aliases() -> None:
    reg = registry(LLM_M5="foreman://t@h")
    reg.register_alias("t", "m5/qwen3:30b")
    assert reg.parse("p/a, t").targets == ("p/a", "m5/qwen3:30b")


VENDORS = (
    "openai anthropic google gemini ollama ollama-cloud foreman llama-swap groq openrouter "
    "mistral deepseek together fireworks xai cerebras perplexity nvidia huggingface vllm "
    "llamacpp lmstudio moonshot zhipu dashscope minimax azure"
)


@pytest.mark.parametrize("vendor", VENDORS.split())
def test_every_vendor_exists_without_credentials(vendor: str) -> None:
    assert Registry(env={}).parse(f"{vendor}/x").targets == (f"{vendor}/x",)


@pytest.mark.parametrize(
    ("vendor", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
        ("groq", "GROQ_API_KEY"),
        ("ollama-cloud", "OLLAMA_API_KEY"),
    ],
)
def test_a_call_without_a_key_fails_as_auth_naming_the_variable(
    vendor: str, variable: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        run(Registry(env={}).parse(f"{vendor}/x").generate("hi"))
    assert (str(caught.value.fault), caught.value.status_code) == ("auth", 401)
    assert variable in str(caught.value)


def test_a_provider_without_an_address_says_which_variable_to_set() -> None:
    with pytest.raises(ProviderError, match="LLM_FOREMAN=foreman://"):
        run(Registry(env={}).parse("foreman/x").generate("hi"))


def test_a_token_never_shows() -> None:
    reg = registry(
        LLM_M5="foreman://s3cr3t-token-value@h", OPENAI_API_KEY="sk-planted-0123456789abcdef"
    )
    reg.parse("m5/x, openai/x")
    shown = repr(reg.providers) + repr(read_dsn("s://s3cr3t-token-value@h", "LLM_X")) + repr(reg)
    assert "s3cr3t" not in shown
    assert "planted" not in shown


def test_the_variable_of_a_provider() -> None:
    assert variable_for("my-prov") == "LLM_MY_PROV"


def test_registration_from_many_threads_while_others_parse() -> None:
    reg = registry()
    errors: list[BaseException] = []

    def register(base: int) -> None:
        for n in range(300):
            reg.register_alias(f"a{base}-{n}", "p/x, p/y")

    def read() -> None:
        try:
            for n in range(300):
                reg.parse(f"p/m{n}, p/z")
                with pytest.raises(UnknownAlias):
                    reg.parse("nobody")
        except BaseException as error:  # noqa: BLE001 - carried to the main thread
            errors.append(error)

    threads = [threading.Thread(target=register, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(reg.aliases) == 1200
