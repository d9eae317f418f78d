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


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without any of these secrets, nor anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, REDACTED)
    return _LOOKS_LIKE_KEY.sub(REDACTED, text)
