"""The dashboard's files, as they lie in the package. They need no key: they hold no data."""

from __future__ import annotations

import html
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files

from understudy.gateway.admin import barred
from understudy.gateway.app import Gateway, Route
from understudy.gateway.http import Reply, Request

BASE = "/understudy/"
INDEX = "index.html"
DOCUMENT = "openapi.json"
KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline, no text that turns into markup, no frame around it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
SAFE = (
    f"content-security-policy: {POLICY}\r\nx-content-type-options: nosniff\r\n"
    "referrer-policy: no-referrer\r\ncross-origin-opener-policy: same-origin\r\n"
    "cross-origin-resource-policy: same-origin\r\n"
)
KEPT = "public, max-age=31536000, immutable"
FRESH = "no-cache"  # its address stays while versions come and go
WHY_BARRED = b"{{barred}}"  # where the page is told whether it must ask for the key
VERSION = b"{{version}}"  # the folder of this very version of the files


def packaged() -> Mapping[str, bytes]:
    """The dashboard's files by name."""
    found = files("understudy") / "ui"
    return {
        entry.name: entry.read_bytes()
        for entry in found.iterdir()
        if entry.name.rpartition(".")[2] in KINDS
    }


def pages(gateway: Gateway, found: Mapping[str, bytes]) -> dict[tuple[str, str], Route]:
    """A route for the page, for the interface's document, and for every file beside them.

    Files lie in a folder named after their content: they are kept for ever and never mixed.
    """
    named = (INDEX, DOCUMENT)
    rest = {name: body for name, body in sorted(found.items()) if name not in named}
    version = sha256(b"".join(rest.values())).hexdigest()[:12]
    index = found[INDEX].replace(VERSION, version.encode())
    routes = {f"{BASE}{version}/{name}": _sent(name, body) for name, body in rest.items()}
    routes[BASE + DOCUMENT] = _sent(DOCUMENT, found[DOCUMENT], FRESH)
    page = _page(gateway, index)
    return {
        ("GET", path): route for path, route in {BASE[:-1]: page, BASE: page, **routes}.items()
    }


def _page(gateway: Gateway, index: bytes) -> Route:
    async def route(request: Request, reply: Reply) -> None:
        why = html.escape(barred(request, gateway.house))
        body = index.replace(WHY_BARRED, why.encode())
        head = f"content-type: {KINDS['html']}\r\ncache-control: no-store\r\n{SAFE}"
        if request.path == BASE:
            return reply.send(200, head.encode(), body)
        # Relative, so that it holds behind a proxy that serves us under a prefix.
        reply.send(308, f"location: {BASE[1:]}\r\n{head}".encode(), body)

    return route


def _sent(name: str, body: bytes, keep: str = KEPT) -> Route:
    kind = KINDS[name.rpartition(".")[2]]
    head = f"content-type: {kind}\r\ncache-control: {keep}\r\n{SAFE}".encode()

    async def route(request: Request, reply: Reply) -> None:
        reply.send(200, head, body)

    return route
