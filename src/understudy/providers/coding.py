"""Content codings: packed bytes in, plain bytes out, never more than there is room for.

A few kilobytes of gzip can hold gigabytes, so every step is told how much room is left and
stops there. Knows gzip, deflate and (when the `brotli` package is there) br; refuses the rest.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Protocol

from understudy.providers.trouble import Cut, Malformed, TooLarge


class Unpacker(Protocol):
    """One body being unpacked."""

    def feed(self, data: bytes, room: int) -> bytes: ...

    def end(self) -> None: ...


class Zlib:
    """Gzip, and deflate with or without its wrapper."""

    __slots__ = ("_inflate", "_wbits")

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits  # 31 for gzip; 0 for deflate: the first byte tells which sort
        self._inflate: zlib._Decompress | None = None

    def feed(self, data: bytes, room: int) -> bytes:
        if not data:
            return b""
        if self._inflate is None:
            # RFC 9110 means the zlib wrapper by "deflate"; servers also send the bare stream.
            wrapped = data[0] & 0x0F == 8
            self._inflate = zlib.decompressobj(self._wbits or (15 if wrapped else -15))
        try:
            # One byte more than fits, so that "full" and "too much" can be told apart.
            out = self._inflate.decompress(data, room + 1)
        except zlib.error as error:
            raise Malformed(f"sent a packed body that cannot be unpacked ({error})") from error
        if len(out) > room:
            raise TooLarge("sent a body that unpacks to more than is allowed")
        if self._inflate.unused_data:
            raise Malformed("sent a packed body with bytes after its end")
        return out

    def end(self) -> None:
        if self._inflate is not None and not self._inflate.eof:
            raise Cut("sent a packed body that stops in the middle")


class _Brotli(Protocol):
    def process(self, data: bytes, *, output_buffer_limit: int) -> bytes: ...
    def can_accept_more_data(self) -> bool: ...
    def is_finished(self) -> bool: ...


class Brotli:
    """Brotli, by the package of that name from 1.2: older ones cannot be told where to stop."""

    __slots__ = ("_begun", "_broken", "_inflate")

    def __init__(self) -> None:
        try:
            brotli = importlib.import_module("brotli")
            self._inflate: _Brotli = brotli.Decompressor()
            self._inflate.process(b"", output_buffer_limit=1)
        except (ImportError, TypeError) as error:
            raise Malformed(
                "sent a br body, and the brotli package (1.2 or later) is missing"
            ) from error
        self._broken: type[Exception] = brotli.error
        self._begun = False

    def feed(self, data: bytes, room: int) -> bytes:
        self._begun = self._begun or bool(data)
        out = b""
        try:
            while data or not (
                self._inflate.can_accept_more_data() or self._inflate.is_finished()
            ):
                out += self._inflate.process(data, output_buffer_limit=room - len(out) + 1)
                if len(out) > room:
                    raise TooLarge("sent a body that unpacks to more than is allowed")
                data = b""
        except self._broken as error:
            raise Malformed("sent a packed body that cannot be unpacked") from error
        return out

    def end(self) -> None:
        if self._begun and not self._inflate.is_finished():
            raise Cut("sent a packed body that stops in the middle")


CODINGS: dict[str, Callable[[], Unpacker]] = {
    "gzip": lambda: Zlib(31),
    "x-gzip": lambda: Zlib(31),
    "deflate": lambda: Zlib(0),
    "br": Brotli,
}


def unpacker(coding: str) -> Unpacker | None:
    """Who unpacks a body of this `content-encoding`; None when it is not packed."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    build = CODINGS.get(name)
    if build is None:
        raise Malformed(f"sent a body packed as {name[:40]!r}, which is not understood")
    return build()
