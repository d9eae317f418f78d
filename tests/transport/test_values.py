"""Origins and heads: what is read, how it is written, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.errors import InvalidDSN, InvalidRequest
from understudy.providers.transport import Origin, Outgoing, render_head

ORIGIN = Origin("https", "api.example.com", 443)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "authority"),
    [
        ("https://api.example.com/v1", "https", "api.example.com", 443, "api.example.com"),
        ("http://api.example.com", "http", "api.example.com", 80, "api.example.com"),
        (
            "HTTPS://API.Example.COM:8443/",
            "https",
            "api.example.com",
            8443,
            "api.example.com:8443",
        ),
        ("http://localhost:11434", "http", "localhost", 11434, "localhost:11434"),
        ("http://127.0.0.1:443", "http", "127.0.0.1", 443, "127.0.0.1:443"),
        ("https://[::1]", "https", "::1", 443, "[::1]"),
        ("http://[2001:db8::7]:8080/v1", "http", "2001:db8::7", 8080, "[2001:db8::7]:8080"),
        ("https://bücher.example", "https", "xn--bcher-kva.example", 443, "xn--bcher-kva.example"),
    ],
)
def test_an_origin_is_read_from_a_base_url(
    url: str, scheme: str, host: str, port: int, authority: str
) -> None:
    origin = Origin.from_url(url)
    assert origin == Origin(scheme, host, port)
    assert origin.authority == authority
    assert str(origin) == f"{scheme}://{authority}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example.com",
        "//api.example.com",
        "ftp://api.example.com",
        "file:///etc/passwd",
        "https://",
        "https://:443",
        "https://user:hunter2@api.example.com",
        "https://hunter2@api.example.com",
        "https://api.example.com:0",
        "https://api.example.com:99999",
        "https://api.example.com:port",
        "https://[::1",
        "https://api.exa mple.com",
        "https://api.example.com\r\nx: y",
        "https://api.example.com\t",
        "https://api.example.com\x00",
        "https://a..b",
        "https://" + "a" * 64 + ".com",
    ],
)
def test_what_is_no_origin_is_refused_without_quoting_a_secret(url: str) -> None:
    with pytest.raises(InvalidDSN) as caught:
        Origin.from_url(url)
    assert "hunter2" not in str(caught.value)


def test_a_head_is_request_line_host_and_headers() -> None:
    head = render_head("POST", ORIGIN, "/v1/x?a=b", {"Authorization": "Bearer k", "x-a": "é\t1"})
    assert head == (
        b"POST /v1/x?a=b HTTP/1.1\r\nhost: api.example.com\r\n"
        b"Authorization: Bearer k\r\nx-a: \xe9\t1\r\n"
    )


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("PO ST", "/", {}),
        ("", "/", {}),
        ("GET\r\n", "/", {}),
        ("POST", "", {}),
        ("POST", "v1", {}),
        ("POST", "/a b", {}),
        ("POST", "/a\r\nx: y", {}),
        ("POST", "/ü", {}),
        ("POST", "/", {"": "a"}),
        ("POST", "/", {"x y": "a"}),
        ("POST", "/", {"x:": "a"}),
        ("POST", "/", {"x\r\n": "a"}),
        ("POST", "/", {"x": "a\r\nevil: 1"}),
        ("POST", "/", {"x": "a\n"}),
        ("POST", "/", {"x": "a\x00"}),
        ("POST", "/", {"x": "a\x7f"}),
        ("POST", "/", {"x": "€"}),
        ("POST", "/", {"Host": "elsewhere"}),
        ("POST", "/", {"Content-Length": "5"}),
        ("POST", "/", {"transfer-encoding": "chunked"}),
        ("POST", "/", {"Connection": "close"}),
        ("POST", "/", {"Expect": "100-continue"}),
    ],
)
def test_a_head_that_could_be_misread_is_refused(
    method: str, path: str, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest):
        render_head(method, ORIGIN, path, headers)


def test_a_refused_value_is_not_quoted() -> None:
    with pytest.raises(InvalidRequest) as caught:
        render_head("POST", ORIGIN, "/", {"authorization": "Bearer hunter2\n"})
    assert "hunter2" not in str(caught.value)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.text(max_size=12), max_size=4))
def test_whatever_the_headers_say_a_head_has_one_line_for_each(headers: dict[str, str]) -> None:
    try:
        head = render_head("POST", ORIGIN, "/", headers)
    except InvalidRequest:
        return
    lines = head.removesuffix(b"\r\n").split(b"\r\n")
    assert len(lines) == 2 + len(headers)
    assert not any(set(line) & {0, 10, 13} for line in lines)


def test_a_request_does_not_show_what_it_carries() -> None:
    assert "hunter2" not in repr(Outgoing(ORIGIN, b"authorization: hunter2", b"hunter2"))
