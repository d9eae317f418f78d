"""What `understudy check` finds in a file, and what it lets be."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.gateway.test_config import ENV, SECRET
from understudy.commands.check import Finding, check, render
from understudy.gateway.config import InvalidConfig
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup


def checked(tmp_path: Path, text: str, env: Mapping[str, str] = ENV) -> list[str]:
    path = tmp_path / "understudy.toml"
    path.write_text(text, encoding="utf-8")
    return [str(finding) for finding in check(path, env)]


def two(**more: str) -> str:
    """Two sound providers and an alias over both, some lines added to sections."""
    rows = {
        "gateway": 'keys = ["sk-client"]\n',
        "one": 'base_url = "https://one.example/v1"\napi_key = "k1"\n',
        "two": 'base_url = "https://two.example/v1"\napi_key = "k2"\n',
        "aliases": 'chat = "one/a, two/b"\n',
    }
    rows |= {name: rows[name] + line + "\n" for name, line in more.items()}
    return (
        f"[gateway]\n{rows['gateway']}[providers.one]\n{rows['one']}"
        f"[providers.two]\n{rows['two']}[aliases]\n{rows['aliases']}"
    )


@pytest.mark.parametrize(
    ("package", "text", "told"),
    [
        ("opentelemetry.sdk", "[gateway]\ntracing = true\n",
         "error    gateway.tracing: tracing needs opentelemetry-sdk; install it"),
        ("redis", '[share]\nurl = "redis://cache"\n',
         "error    share.url: needs the redis package"),
    ],
)  # fmt: skip
def test_a_package_that_a_setting_takes_and_that_is_missing_is_told_as_serve_would(
    tmp_path: Path, package: str, text: str, told: str
) -> None:
    file = tmp_path / "understudy.toml"
    file.write_text(text)
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from understudy.cli import main\n"
        f"sys.exit(main(['check', {str(file)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith(told)


@pytest.mark.parametrize(
    "bare",
    [
        'vendor = "llama-swap"\nbase_url = "http://localhost:9292"',
        'vendor = "deepseek"\napi_key = "k"',
        'dialect = "anthropic"\nbase_url = "https://a.example"',
    ],
)
def test_an_address_needs_no_path_where_we_know_the_way(tmp_path: Path, bare: str) -> None:
    assert checked(tmp_path, f"[providers.a]\n{bare}\n") == []


def test_a_sound_file_has_no_findings(tmp_path: Path) -> None:
    assert checked(tmp_path, two()) == []
    assert render([]) == "nothing to mend"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (two(aliases='a = "b"\nb = "a"'), "error    aliases.a: alias cycle in 'a': a -> b -> a"),
        (two(aliases='a = "tow/x, one/a"'), "error    aliases.a: unknown provider 'tow'"),
        (two(aliases='"a b," = "one/a, two/b"'), "error    aliases.a b,: bad alias name"),
        (two(one='headers = { host = "x" }'),
         "error    providers.one: the header 'host' is written by the transport"),
        ('[gateway]\nhost = "0.0.0.0"\n',
         "error    gateway.keys: are needed to listen on 0.0.0.0; or listen on 127.0.0.1"),
        ('[providers.x]\nvendor = "Opnai"\n',
         "error    providers.x: unknown vendor 'Opnai'; did you mean 'openai'?"),
        ("[providers.opneai]\n",
         "error    providers.opneai: base_url is missing, and its name is no vendor that has one; "
         "did you mean 'openai'?"),
        (two(one='api_keys = ["k3", "  "]'),
         "error    providers.one: a key of nothing but blanks"),
        (two(gateway='admin_key = "$ADMIN_KEY"'),
         "warning  gateway.admin_key: has a $NAME, which is sent as it stands"),
        (two(one='headers = { x-team = "Team $TEAM" }'),
         "warning  providers.one.headers.x-team: has a $NAME, which is sent as it stands"),
        ('[providers.a]\nbase_url = "https://a.example/v1/chat/completions/?api-version=1"\n',
         "warning  providers.a.base_url: ends in /chat/completions, which is added"),
        ('[providers.a]\ndialect = "anthropic"\nbase_url = "https://a.example/v1/messages"\n',
         "warning  providers.a.base_url: ends in /v1/messages, which is added"),
        ('[providers.a]\nbase_url = "https://g.example/v1beta/models/g:generateContent"\n',
         "warning  providers.a.base_url: ends in /v1beta/models/g:generateContent, which is"),
        ('[providers.a]\nbase_url = "https://a.example/v1?key=planted"\n',
         "warning  providers.a.base_url: what stands behind its ? is never sent"),
        ('[providers.a]\nbase_url = "https://a.example/v1#planted"\n',
         "warning  providers.a.base_url: what stands behind its # is never sent"),
        (two() + "[health]\nbase = 60\ncap = 30\n",
         "warning  health.cap: is 30, less than base (60): every bench takes 30 s"),
        (two(one="connect_timeout = 9\nfirst_byte_timeout = 8"),
         "warning  providers.one.connect_timeout: is 9; first_byte_timeout (8) is over before"),
        (two(gateway="timeout = 20", one="first_byte_timeout = 30"),
         "warning  providers.one.first_byte_timeout: is 30; gateway.timeout (20) is over before"),
        (two(gateway="workers = 257"), "warning  gateway.workers: are 257 processes"),
        (two() + '[providers.one.models."aa"]\ntools = true\n',
         "warning  providers.one.models.aa: no alias leads to this model; did you mean 'a'?"),
        (two(gateway="allow_specs = false") + "[providers.three]\n"
         'base_url = "https://three.example/v1"\n[providers.three.models.m]\ntools = true\n',
         "warning  providers.three.models.m: no alias leads to this model"),
        ('[providers."a b"]\nbase_url = "https://a.example/v1"\n',
         "warning  providers.a b: a name with a blank or #"),
        ('[providers."a#b"]\nbase_url = "https://a.example/v1"\n',
         "warning  providers.a#b: a name with a blank or #"),
        ("[providers.x]\n", "error    providers.x: base_url is missing"),
        (two(aliases='solo = "one/a"'),
         "warning  aliases.solo: has one target, one/a; nobody takes over if it fails"),
        (two(aliases='same = "one/a, one/b"'),
         "warning  aliases.same: its 2 targets are all at one host, one.example, and fail "
         "together"),
        ('[providers.a]\nvendor = "openai"\napi_key = "k1"\n[providers.b]\nvendor = "openai"\n'
         'base_url = "https://eu.example/v1"\napi_key = "k2"\n[aliases]\nx = "a/m, b/m"\n',
         "warning  aliases.x: its 2 targets are all of one vendor, openai, and fail together"),
        ('[providers.a]\nbase_url = "https://a.example/v1"\napi_key = "k"\n[providers.b]\n'
         'base_url = "https://b.example/v1"\napi_key = "k"\n[aliases]\nx = "a/m, b/m"\n',
         "warning  aliases.x: its 2 targets are all on one account, and fail together"),
        (two(aliases='dup = "one/a, two/b, one/a"'),
         "warning  aliases.dup: names 'one/a' twice; the second is never reached"),
        (two(aliases='more = "one/a, two/b, chat"'),
         "warning  aliases.more: 'chat' adds nobody: all its targets stand before it"),
        (two(gateway="allow_specs = false")
         + '[providers.three]\nbase_url = "https://three.example/v1"\n',
         "warning  providers.three: no alias leads to it"),
        ("[gateway]\nallow_specs = false\n", "warning  aliases: are missing"),
        (two(gateway='admin_key = "sk-client"'),
         "warning  gateway.admin_key: is a client key too"),
        ('[gateway]\nkeys = ["k", "k"]\n',
         "warning  gateway.keys: the same key stands there twice"),
        ('[gateway]\nkeys = ["k"]\n[providers.a]\nbase_url = "https://a.example/v1"\n'
         'api_key = "k"\n', "warning  providers.a: its key is also a key of the gateway"),
        ("[providers.openai]\n[providers.anthropic]\n"
         '[aliases]\nx = "openai/m, anthropic/n"\n',
         "warning  providers.openai: no key for provider 'openai'; set OPENAI_API_KEY"),
        ('[providers.a]\ndialect = "anthropic"\nbase_url = "https://a.example/v1"\n',
         "warning  providers.a.base_url: ends in /v1, which the dialect 'anthropic' adds"),
        ('[providers.a]\nbase_url = "https://a.example/"\n',
         "warning  providers.a.base_url: has no path; most servers of the dialect 'openai' are"),
        ('[providers.openai]\nbase_url = "https://api.openai.com"\napi_key = "k"\n',
         "warning  providers.openai.base_url: has no path; most servers of the dialect 'openai'"),
        ('[providers.a]\nbase_url = "http://far.example/v1"\napi_key = "k"\n',
         "warning  providers.a.base_url: is http; its key travels in the clear"),
    ],
)  # fmt: skip
def test_check_finds_it_and_says_where(tmp_path: Path, text: str, told: str) -> None:
    assert any(line.startswith(told) for line in checked(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        (two(aliases='part = "one/a"\nwhole = "part, two/b"'), "aliases.part"),
        (two(aliases='chat2 = "chat, one/z"'), "aliases.chat2"),
        ('[providers.a]\nbase_url = "http://127.0.0.1:1/v1"\napi_key = "k"\n', "providers.a"),
        ('[providers.x]\nbase_url = "htp:/"\n[aliases]\nc = "x/a, openai/b"\n', "aliases.c"),
        ('[providers.x]\nbase_url = "htp:/"\n', "providers.x"),  # its key is told of
        (two(one='headers = { x = "costs $5, or $5USD" }'), "providers.one.headers.x"),
        (two(gateway="timeout = 10"), "providers.one.first_byte_timeout"),  # the default
        (two(one="first_byte_timeout = 3"), "providers.one.connect_timeout"),  # the default
        (two(one="connect_timeout = 9\nfirst_byte_timeout = 0"), "providers.one.connect_timeout"),
        (
            two() + "[providers.three]\nbase_url = 'https://h.example/v1'\n"
            "[providers.three.models.m]\ntools = true\n",
            "providers.three.models.m",
        ),
    ],
)
def test_check_does_not_cry_wolf(tmp_path: Path, text: str, quiet: str) -> None:
    assert [line for line in checked(tmp_path, text) if f" {quiet}:" in line] == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "Is a directory"),
        ("nowhere/journal.jsonl", "No such file or directory"),
        ("understudy.toml/journal.jsonl", "Not a directory"),
        ("journal.jsonl", ""),
    ],
)
def test_a_journal_that_serve_could_not_write_is_told_and_none_is_made(
    tmp_path: Path, path: str, why: str
) -> None:
    text = f'{two()}[journal]\npath = "{tmp_path / path}"\n'
    told = [f"error    journal.path: cannot be written: {why}"] if why else []
    assert checked(tmp_path, text) == told
    assert [found.name for found in tmp_path.iterdir()] == ["understudy.toml"]
    if why:
        with pytest.raises(InvalidConfig, match=f"cannot be written: {why}"):
            Runtime(Setup(tmp_path / "understudy.toml", env=ENV), lambda _: None)


def test_errors_come_first_and_are_counted(tmp_path: Path) -> None:
    lines = checked(tmp_path, two(aliases='solo = "one/a"\nlost = "nobody"'))
    assert [line.split()[0] for line in lines] == ["error", "warning"]
    path = tmp_path / "understudy.toml"
    assert render(check(path, ENV)).splitlines()[-1] == "1 error, 1 warning"
    assert check(path, ENV)[0].to_dict()["level"] == "error"


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    missing = check(tmp_path / "nowhere.toml", {})
    assert missing == [Finding("error", "the file", "cannot be read: No such file or directory")]
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    [finding] = check(tmp_path / "latin.toml", {})
    assert finding.what == "cannot be read: it is not UTF-8"


def test_no_finding_shows_a_key(tmp_path: Path) -> None:
    text = (
        f'[gateway]\nkeys = ["{SECRET}", "{SECRET}"]\nadmin_key = "{SECRET}"\n[providers.a]\n'
        f'base_url = "http://far.example/v1"\napi_keys = ["{SECRET}", "{SECRET}"]\n'
        f'[providers.b]\nbase_url = "http://{SECRET}@far.example/v1"\napi_key = "{SECRET}"\n'
        f'[aliases]\nx = "a/m, b/m"\n'
    )
    lines = checked(tmp_path, text)
    assert len(lines) > 4
    assert SECRET not in "\n".join(lines)


def test_a_probe_connects_to_every_provider_and_sends_nothing(tmp_path: Path) -> None:
    heard: list[bytes] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as alive,
        socket.create_server(("127.0.0.1", 0)) as soon_dead,
    ):
        dead = soon_dead.getsockname()[1]
        soon_dead.close()
        up = alive.getsockname()[1]
        path = tmp_path / "understudy.toml"
        path.write_text(
            f'[providers.up]\nbase_url = "http://127.0.0.1:{up}/v1"\n'
            f'[providers.down]\nbase_url = "http://127.0.0.1:{dead}/v1"\n',
            encoding="utf-8",
        )
        findings = check(path, {}, probe=True)
        peer, _ = alive.accept()
        with peer:
            heard.append(peer.recv(1))
    assert findings == [
        Finding("error", "providers.down", f"127.0.0.1:{dead} refused the connection")
    ]
    assert heard == [b""]  # connected, closed, nothing in between


def test_behind_a_proxy_the_proxy_is_probed(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    path = tmp_path / "understudy.toml"
    path.write_text('[providers.x]\nbase_url = "https://nowhere.invalid/v1"\n', encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        env = {"HTTPS_PROXY": f"http://me:planted@127.0.0.1:{proxy.getsockname()[1]}"}
        assert check(path, env, probe=True) == []
    [finding] = check(path, env, probe=True)
    assert "refused the connection" in finding.what
    assert "planted" not in finding.what


def test_a_probe_of_tls_that_is_none_says_so(tmp_path: Path) -> None:
    async def work() -> list[Finding]:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 no\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        path = tmp_path / "understudy.toml"
        path.write_text(f'[providers.x]\nbase_url = "https://127.0.0.1:{port}/v1"\n')
        async with server:
            return await asyncio.to_thread(check, path, {}, True)

    [finding] = asyncio.run(work())
    assert (finding.level, finding.path) == ("error", "providers.x")
    assert "failed at TLS" in finding.what
