"""What an exception object tells: status, headers, body and the names of its types.

Client libraries are recognised by the attributes their errors carry, never imported. Only plain
attributes are read; nothing of a foreign object is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from understudy.core.errors import ProviderError

MAX_LINKS = 32
STATUS_NAMES = ("status_code", "status", "http_status", "code")
HEADER_NAMES = ("headers", "hdrs", "response_headers")
BODY_NAMES = ("body", "details", "_content", "error")
NAMES = (*STATUS_NAMES, *HEADER_NAMES, *BODY_NAMES, "response")


@dataclass(frozen=True, slots=True)
class Told:
    """The evidence an exception carries."""

    status: int | None = None
    headers: object = None
    body: object = None
    text: str = ""
    kinds: tuple[str, ...] = ()


def unfold(error: BaseException) -> list[BaseException]:
    """An error, what it holds and what caused it, outermost first."""
    links: list[BaseException] = []
    queue: list[BaseException | None] = [error]
    while queue and len(links) < MAX_LINKS:
        link = queue.pop(0)
        if link is None or any(link is seen for seen in links):
            continue
        links.append(link)
        if isinstance(link, BaseExceptionGroup):
            queue.extend(link.exceptions)
        queue.append(link.__cause__)
        queue.append(None if link.__suppress_context__ else link.__context__)
    return links


def tell(links: Iterable[BaseException]) -> Told:
    """The first status, headers and body in the chain; the types of all of it."""
    status: int | None = None
    headers: object = None
    body: object = None
    texts: list[str] = []
    kinds: list[str] = []
    for link in links:
        fields = _fields(link)
        fields = {**_response(fields.get("response")), **fields}
        status = status or _status(fields)
        headers = headers or _any(fields, HEADER_NAMES)
        body = body or _body(fields)
        texts.append(_said(link))
        kinds += [kind.__name__ for kind in type(link).__mro__ if kind not in _COMMON]
    return Told(status, headers, body, " ".join(texts)[:4_000], tuple(kinds))


_COMMON = (object, BaseException, Exception)


def _said(link: BaseException) -> str:
    try:
        return f"{type(link).__name__}: {link}"
    except Exception:  # noqa: BLE001 - a foreign __str__ may fail; its name is enough
        return type(link).__name__


def _fields(thing: object) -> dict[str, object]:
    """The plain attributes of an object and of its classes that are of interest."""
    found: dict[str, object] = {}
    for kind in reversed(type(thing).__mro__):
        found.update((n, v) for n, v in kind.__dict__.items() if n in NAMES and _is_plain(v))
    try:
        own: dict[str, object] = vars(thing)
    except TypeError:
        own = {}
    found.update((n, own[n]) for n in NAMES if n in own)
    return found


def _is_plain(value: object) -> bool:
    return isinstance(value, int | str | bytes | dict | list)


def _response(response: object) -> dict[str, object]:
    if isinstance(response, dict):  # botocore keeps everything here
        about = response.get("ResponseMetadata")
        about = about if isinstance(about, dict) else {}
        return {
            "status": about.get("HTTPStatusCode"),
            "headers": about.get("HTTPHeaders"),
            "body": response.get("Error"),
        }
    return {} if response is None else _fields(response)


def _status(fields: dict[str, object]) -> int | None:
    for name in STATUS_NAMES:
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return None


def _body(fields: dict[str, object]) -> object:
    for name in BODY_NAMES:
        value = fields.get(name)
        if value and isinstance(value, bytes | str | dict | list):
            return value
    return None


def _any(fields: dict[str, object], names: Iterable[str]) -> object:
    return next((fields[n] for n in names if fields.get(n)), None)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status an error tells of: one of ours, or anybody's."""
    if error is None:
        return None
    return error.status_code if isinstance(error, ProviderError) else tell(unfold(error)).status
