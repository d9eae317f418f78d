"""Which requests go through a proxy: a table."""

from __future__ import annotations

import sys

import pytest

from understudy.core.errors import InvalidDSN
from understudy.providers.pool import Pool
from understudy.providers.route import choose, transport_for
from understudy.providers.transport import Origin

PROXY = "http://proxy.test:3128"
HTTPS = Origin.from_url("https://api.example.com")
HTTP = Origin.from_url("http://api.example.com")


@pytest.mark.parametrize(
    ("env", "origin", "proxy"),
    [
        ({}, HTTPS, None),
        ({"HTTPS_PROXY": PROXY}, HTTPS, PROXY),
        ({"https_proxy": PROXY}, HTTPS, PROXY),
        ({"https_proxy": "http://lower:1", "HTTPS_PROXY": PROXY}, HTTPS, "http://lower:1"),
        ({"HTTPS_PROXY": PROXY}, HTTP, None),
        ({"HTTP_PROXY": PROXY}, HTTP, PROXY),
        ({"HTTP_PROXY": PROXY}, HTTPS, None),
        ({"ALL_PROXY": PROXY}, HTTP, PROXY),
        ({"ALL_PROXY": PROXY}, HTTPS, PROXY),
        ({"ALL_PROXY": PROXY, "HTTPS_PROXY": "http://other:1"}, HTTPS, "http://other:1"),
        ({"HTTPS_PROXY": " "}, HTTPS, None),
        ({"HTTPS_PROXY": "proxy.test:3128"}, HTTPS, PROXY),
        ({"HTTPS_PROXY": "https://user:pw@proxy.test"}, HTTPS, "https://user:pw@proxy.test"),
        # Set by a CGI server from a request's own header: not to be believed.
        ({"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, HTTP, None),
        ({"http_proxy": PROXY, "REQUEST_METHOD": "GET"}, HTTP, PROXY),
    ],
)
def test_the_environment_names_the_proxy(
    env: dict[str, str], origin: Origin, proxy: str | None
) -> None:
    assert choose(env, origin) == proxy


@pytest.mark.parametrize(
    ("rules", "url", "spared"),
    [
        ("*", "https://api.example.com", True),
        ("api.example.com", "https://api.example.com", True),
        ("API.Example.com", "https://api.example.com", True),
        ("api.example.com", "https://other.example.com", False),
        ("api.example.com", "https://xapi.example.com", False),
        ("example.com", "https://api.example.com", True),
        ("example.com", "https://notexample.com", False),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://notexample.com", False),
        ("other.test, api.example.com", "https://api.example.com", True),
        ("other.test api.example.com", "https://api.example.com", True),
        ("api.example.com:443", "https://api.example.com", True),
        ("api.example.com:8443", "https://api.example.com", False),
        ("api.example.com:8443", "https://api.example.com:8443", True),
        ("127.0.0.1", "https://127.0.0.1:9000", True),
        ("10.0.0.0/8", "https://10.1.2.3", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3/8", "https://10.9.9.9", True),
        ("10.0.0.0/8", "https://ten.example.com", False),
        ("::1", "https://[::1]:9000", True),
        ("[::1]", "https://[::1]:9000", True),
        ("[::1]:9000", "https://[::1]:9000", True),
        ("[::1]:9001", "https://[::1]:9000", False),
        ("fd00::/8", "https://[fd12::1]", True),
        ("fd00::/8", "https://10.0.0.1", False),
        (",,  ,", "https://api.example.com", False),
        (".", "https://api.example.com", False),
        ("/", "https://api.example.com", False),
    ],
)
def test_no_proxy_lists_who_is_reached_without(rules: str, url: str, spared: bool) -> None:
    env = {"ALL_PROXY": PROXY, "NO_PROXY": rules}
    assert (choose(env, Origin.from_url(url)) is None) is spared


@pytest.mark.parametrize(
    "value",
    ["socks5://user:hunter2@proxy.test", "http://", "http://a b", "http://h:port", "http://h:0"],
)
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(value: str) -> None:
    with pytest.raises(InvalidDSN, match="HTTPS_PROXY") as caught:
        choose({"HTTPS_PROXY": value}, HTTPS)
    assert "hunter2" not in str(caught.value)


def test_without_a_proxy_the_direct_transport_is_used_as_it_is() -> None:
    direct = Pool()
    assert transport_for({}, HTTPS, direct) is direct
    assert transport_for({"HTTPS_PROXY": PROXY}, HTTP, direct) is direct


def test_with_a_proxy_another_transport_takes_its_place() -> None:
    pytest.importorskip("aiohttp")
    proxied = transport_for({"HTTPS_PROXY": "http://user:hunter2@proxy.test:3128"}, HTTPS, Pool())
    assert type(proxied).__name__ == "Proxied"
    assert "hunter2" not in repr(proxied)
    assert "understudy.providers.proxy" in sys.modules
