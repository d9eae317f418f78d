"""Configuration files: every problem with its path, and what `check` thinks unwise."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from understudy.core.policy import POLICIES
from understudy.gateway.config import InvalidConfig, examine, read_config
from understudy.gateway.keys import NAMED, SECTIONS

SECRET = "sk-planted-0123456789abcdef"
GOOD = """
[gateway]
keys = ["${CLIENT}"]
[providers.one]
base_url = "https://one.example/v1"
api_key = "${ONE}"
[providers.two]
dialect = "anthropic"
base_url = "https://two.example"
api_keys = ["k2", "k3"]
first_byte_timeout = 3
[providers.two.models.c]
context_window = 1000
[aliases]
chat = "one/a, two/c"
[policy]
transient_retries = 0
[policy.chat]
max_wait = 1.5
[health]
base = 2
"""
ENV = {"CLIENT": "sk-client", "ONE": "sk-one"}


def problems(text: str, env: Mapping[str, str] = ENV) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        read_config(text, env)
    return [str(problem) for problem in caught.value.problems]


def test_values_are_read_variables_filled_in_and_defaults_added() -> None:
    config = read_config(GOOD, ENV)
    assert config.gateway["keys"] == ["sk-client"]
    assert config.gateway["port"] == 8080
    assert config.providers["one"]["api_key"] == "sk-one"
    assert config.providers["two"]["first_byte_timeout"] == 3
    assert config.providers["two"]["idle_timeout"] == 60
    assert config.policy == {"transient_retries": 0}
    assert config.policies == {"chat": {"max_wait": 1.5}}
    assert config.health["base"] == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[gatway]\n", "gatway: unknown section; did you mean 'gateway'?"),
        ("[gateway]\nprot = 1\n", "gateway.prot: unknown key; did you mean 'port'?"),
        ("[gateway]\nport = 70000\n", "gateway.port: is 70000; expected a port, 0 to 65535"),
        ("[gateway]\nport = true\n", "gateway.port: is True; expected a port, 0 to 65535"),
        ("[gateway]\ntimeout = 0\n", "gateway.timeout: is 0; expected seconds above 0"),
        ("[gateway]\ntimeout = nan\n", "gateway.timeout: is nan; expected seconds above 0"),
        ("gateway = 5\n", "gateway: is 5; a table is expected"),
        ('[gateway]\npolicy = "kind"\n',
         "gateway.policy: is 'kind'; expected one of availability, fail_fast"),
        ('[gateway]\npolicy = "availabilty"\n',
         "gateway.policy: is 'availabilty'; did you mean 'availability'? expected one of "
         "availability, fail_fast"),
        ('[providers.x]\nauth = "sk-planted-0123456789abcdef"\n',
         "providers.x.auth: is a text; expected one of bearer, x-api-key, x-goog-api-key, "
         "api-key, none"),
        ('[gateway]\nadmin_key = "${ADMIN:-sk-planted}"\n',
         "gateway.admin_key: has a ${ that begins no ${NAME}; defaults are not understood"),
        ('[providers.x]\nheaders = { a = "${A" }\n',
         "providers.x.headers.a: has a ${ that begins no ${NAME}; defaults are not understood"),
        ('[gateway]\nkeys = ["${NOBODY}"]\n', "gateway.keys[0]: the variable NOBODY is not set"),
        ('[gateway]\nadmin_key = "${EMPTY}"\n',
         "gateway.admin_key: the variable EMPTY is set but empty"),
        ('[gateway]\nkeys = [""]\n',
         "gateway.keys: is a list; expected a list of keys of printable ASCII without blanks"),
        ('[gateway]\nkeys = ["sk-planted-0123456789abcdef", 5]\n',
         "gateway.keys: is a list; expected a list of keys of printable ASCII without blanks"),
        ('[providers.x]\napi_key = { a = "sk-planted" }\n',
         "providers.x.api_key: is a table; expected a text"),
        ('[providers.x]\nbase_ulr = "http://h"\n',
         "providers.x.base_ulr: unknown key; did you mean 'base_url'?"),
        ('[providers.x]\nbase_url = "ftp://h"\n',
         "providers.x.base_url: is a text; expected a URL starting with http:// or https://"),
        ('[providers.x]\ndialect = "OpenAI"\n',
         "providers.x.dialect: is 'OpenAI'; did you mean 'openai'? expected one of openai, "
         "responses, anthropic, gemini, ollama"),
        ('["providers"."a/b"]\n', "providers.a/b: a provider's name has no slash, comma or blank"),
        ("[providers.x.models.m]\ncontext_windw = 5\n",
         "providers.x.models.m.context_windw: unknown key; did you mean 'context_window'?"),
        ("[aliases]\nchat = 5\n", "aliases.chat: is 5; expected a chain as text"),
        ("[policy.nobody]\nmax_wait = 1\n", "policy.nobody: no such alias"),
        ("[policy]\nmax_wiat = 1\n", "policy.max_wiat: unknown key; did you mean 'max_wait'?"),
        ("[health]\nfactor = 1\n", "health.factor: is 1; expected a number above 1"),
        ('[share]\nurl = "redis://:sk-planted@cache:66379/0"\n',
         "share.url: is a text; expected a URL like redis://host:6379, rediss://host or "
         "unix:///path"),
        ('[share]\nurl = "redis://[::1/0"\n',
         "share.url: is a text; expected a URL like redis://host:6379, rediss://host or "
         "unix:///path"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_told_with_its_path(text: str, told: str) -> None:
    assert problems(text, {"EMPTY": ""}) == [told]


def test_all_problems_are_told_at_once_and_no_secret_with_them() -> None:
    text = f'[gateway]\nport = "{SECRET}"\nadmin_key = ["{SECRET}"]\n[health]\nbsae = 1\n'
    told = problems(text)
    assert [line.split(":")[0] for line in told] == [
        "gateway.port", "gateway.admin_key", "health.bsae",
    ]  # fmt: skip
    assert SECRET not in " ".join(told)


def test_what_is_not_toml_is_one_problem_with_its_line() -> None:
    [told] = problems("[gateway\n")
    assert told.startswith("the file: is not TOML: ")
    assert "line 1" in told


def test_the_mark_that_some_editors_begin_a_file_with_is_none_of_its_text() -> None:
    assert read_config("\ufeff" + GOOD, ENV) == read_config(GOOD, ENV)


def test_what_can_be_read_of_a_bad_file_is_read_with_defaults_for_the_rest() -> None:
    config, wrong = examine('[gateway]\nport = "x"\nhost = "::1"\n', {})
    assert (config.gateway["port"], config.gateway["host"]) == (8080, "::1")
    assert [problem.path for problem in wrong] == ["gateway.port"]


def test_every_default_is_a_value_its_own_key_would_take() -> None:
    rows = [key for keys in SECTIONS.values() for key in keys if key.default is not None]
    assert [key.name for key in rows if not key.kind.fits(key.default)] == []


def test_every_policy_that_can_be_named_is_there() -> None:
    assert set(NAMED) <= set(POLICIES)


def test_a_configuration_shows_no_secret() -> None:
    config = read_config(GOOD, {"CLIENT": SECRET, "ONE": SECRET})
    assert SECRET not in repr(config)


# -- check
