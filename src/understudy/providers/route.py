"""Which way out: straight, or through a proxy that the environment names.

`HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` are read as curl reads them, lower case first, and
`NO_PROXY` lists who is reached without. The environment is a mapping somebody passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from understudy.core.errors import InvalidDSN, UnderstudyError
from understudy.providers.transport import Origin, Transport

Env = Mapping[str, str]

VARIABLES = {"http": ("http_proxy", "all_proxy"), "https": ("https_proxy", "all_proxy")}


def choose(env: Env, origin: Origin) -> str | None:
    """The URL of the proxy to go through, or None to go straight."""
    named = ((name, _read(env, name)) for name in VARIABLES.get(origin.scheme, ()))
    name, url = next(((name, url) for name, url in named if url), ("", ""))
    if not url or any(_spares(rule, origin) for rule in _rules(_read(env, "no_proxy"))):
        return None
    return _checked(name, url)


def transport_for(env: Env, origin: Origin, direct: Transport) -> Transport:
    """The transport to reach an origin by: the one given, unless a proxy is in force."""
    proxy = choose(env, origin)
    if proxy is None:
        return direct
    try:
        from understudy.providers.proxy import Proxied  # aiohttp takes 0.3 s to import
    except ModuleNotFoundError as error:
        wanted = "pip install 'understudy[proxy]'"
        raise UnderstudyError(
            f"a proxy is set for {origin} and needs aiohttp: {wanted}"
        ) from error
    return Proxied(proxy)


def _read(env: Env, name: str) -> str:
    # A CGI server puts a request's own "Proxy:" header into HTTP_PROXY (CVE-2016-5385).
    upper = "" if name == "http_proxy" and "REQUEST_METHOD" in env else name.upper()
    return (env.get(name) or env.get(upper) or "").strip()


def _checked(name: str, url: str) -> str:
    """A proxy URL with a scheme and a host. What is wrong is said without quoting a password."""
    full = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(full)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable or any(char <= " " for char in full):
        raise InvalidDSN(f"{name.upper()} must be http://[user:password@]host[:port]")
    return full


def _rules(text: str) -> list[str]:
    return text.replace(",", " ").lower().split()


def _spares(rule: str, origin: Origin) -> bool:
    """Does this entry of NO_PROXY mean the origin?"""
    if rule == "*":
        return True
    host, port = _split(rule)
    if port and port != str(origin.port):
        return False
    name = origin.host.lower().rstrip(".")
    domain = host.strip(".")
    if name == domain or (domain and name.endswith(f".{domain}")):
        return True
    try:
        return ip_address(name) in ip_network(host, strict=False)
    except ValueError:
        return False


def _split(rule: str) -> tuple[str, str]:
    """Host and port of an entry; an IPv6 address is no port."""
    if rule.startswith("["):
        host, _, rest = rule[1:].partition("]")
        return host, rest.removeprefix(":")
    host, _, port = rule.partition(":")
    return (host, port) if port.isdigit() and ":" not in port else (rule, "")
