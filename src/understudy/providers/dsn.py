"""`LLM_<NAME>=scheme://[token@]host[/path]`, read by plain splits: no decoding, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from understudy.core.errors import InvalidDSN

PREFIX = "LLM_"


@dataclass(frozen=True, slots=True)
class DSN:
    """Where a provider is. The token never shows in `repr`."""

    scheme: str
    host: str  # with port and path, without a trailing slash
    token: str = field(default="", repr=False)


def read_dsn(text: str, variable: str) -> DSN:
    """Raises InvalidDSN, which names the variable and what is wrong, never the token."""
    scheme, mark, rest = text.strip().partition("://")
    token, at, host = rest.partition("@")
    if not at:
        token, host = "", rest
    host = host.rstrip("/")
    wrong = (
        "there is no '://'"
        if not mark
        else "the scheme is missing"
        if not scheme
        else "the host is missing"
        if not host or host.startswith("/")
        else ""
    )
    if wrong:
        raise InvalidDSN(
            f"invalid DSN in {variable}: {wrong}; write {variable}=scheme://[token@]host[/path]"
        )
    return DSN(scheme.lower(), host, token)


def variable_for(provider: str) -> str:
    """The one variable that names a provider: `my-prov` -> `LLM_MY_PROV`."""
    return PREFIX + provider.upper().replace("-", "_")


def provider_names(env: Mapping[str, str]) -> dict[str, str]:
    """`LLM_*` variables by the provider they define: `LLM_MY_BOX` -> `my_box`.

    A value without '://' may belong to somebody else (`LLM_TIMEOUT=30`); it is still listed, so
    that a mistyped DSN is reported to whoever uses its name, but it harms nobody.
    """
    names = sorted(key for key in env if key.startswith(PREFIX) and len(key) > len(PREFIX))
    return {key.removeprefix(PREFIX).lower(): key for key in names}
