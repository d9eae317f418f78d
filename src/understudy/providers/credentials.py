"""Keys, known to the outside by label and fingerprint only; and texts cleared of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

REDACTED = "[redacted]"

# What keys look like, for those quoted back to us that are not ours: prefix, then many characters.
_LOOKS_LIKE_KEY = re.compile(
    r"\b(?:sk|pk|gsk|xai|hf|nvapi|r8|AIza|Bearer|key)[-_ ]?[A-Za-z0-9_\-]{16,256}"
)


@dataclass(frozen=True, slots=True)
class Credential:
    """One key of a provider. Its secret is in no `repr`, error or log."""

    label: str
    secret: str = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Tells two keys apart without telling either."""
        return hashlib.sha256(self.secret.encode()).hexdigest()[:8] if self.secret else "none"

    def __str__(self) -> str:
        return f"{self.label}({self.fingerprint})"


def credentials(keys: Iterable[str]) -> tuple[Credential, ...]:
    """One key is `default`, several are `key1`, `key2`, …; blank ones do not count.

    Blanks round a key are not part of it: a key read from a file ends with a line break.
    """
    given = [found for key in keys if (found := key.strip())]
    if len(given) <= 1:
        return (Credential("default", given[0] if given else ""),)
    return tuple(Credential(f"key{n}", key) for n, key in enumerate(given, 1))


class Secrets:
    """Keys that stand in nothing we pass on, however they are written there.

    Some servers escape a `/` or a `+` in JSON, or as a URL does: whoever reads it has the key.
    """

    __slots__ = ("_bytes", "_text")

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = "|".join(_any_spelling(secret) for secret in secrets if len(secret) >= 4)
        self._text = re.compile(forms) if forms else None
        self._bytes = re.compile(forms.encode()) if forms else None

    def out_of(self, text: str) -> str:
        """The text without them, and without anything that looks like a key."""
        known = text if self._text is None else self._text.sub(REDACTED, text)
        return _LOOKS_LIKE_KEY.sub(REDACTED, known)

    def out_of_bytes(self, data: bytes) -> bytes:
        return data if self._bytes is None else self._bytes.sub(REDACTED.encode(), data)


def _any_spelling(secret: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else _spellings(c) for c in secret)


def _spellings(char: str) -> str:
    """As it is, escaped by a backslash or by its number in JSON, or by its bytes in a URL."""
    number = "".join(rf"\\[uU](?i:{unit:04x})" for unit in _units(char))
    in_url = "".join(rf"%(?i:{byte:02x})" for byte in char.encode("utf-8", "replace"))
    return rf"(?:\\?{re.escape(char)}|{number}|{in_url})"


def _units(char: str) -> list[int]:
    """UTF-16, as JSON counts."""
    data = char.encode("utf-16-be", "replace")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without any of these secrets, nor anything that looks like a key."""
    return Secrets(secrets).out_of(text)
