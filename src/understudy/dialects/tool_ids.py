"""Ids of tool calls and users where a wire is strict about them: shortened, always alike."""

from __future__ import annotations

import re
from hashlib import sha256

_USER = re.compile(r"(?!\d+$)[a-zA-Z0-9_-]{1,64}", re.ASCII)
_NINE = re.compile(r"[a-zA-Z0-9]{9}", re.ASCII)


def fitted_id(found: str, longest: int) -> str:
    """The id itself, or a digest of it when the wire would refuse one so long."""
    return found if len(found) <= longest else f"call_{_digest(found)[:24]}"


def nine_letter_id(found: str) -> str:
    """Mistral takes exactly nine letters and digits; calls and results map to the same nine."""
    return found if _NINE.fullmatch(found) else _digest(found)[:9]


def fitted_user(found: str | None) -> str | None:
    """A client's name for its user as all vendors take it: short, plain, no address or number."""
    return found if not found or _USER.fullmatch(found) else f"user_{_digest(found)[:24]}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()
