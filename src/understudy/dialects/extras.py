"""Fields that ride along: kept when read, laid over what is written. Knows no vendor.

Nulls are not kept: on these wires a null field and a missing one say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from understudy.messages.parts import NO_EXTRA, Extra, Json


def kept(fields: Mapping[str, Json], known: Iterable[str]) -> Extra:
    """The fields a dialect has no neutral name for, for `extra`."""
    left = {k: v for k, v in fields.items() if v is not None and k not in known}
    return left or NO_EXTRA


def given(**fields: Json) -> dict[str, Json]:
    """An object of those fields that say something: no nulls, no empty texts or lists."""
    return {k: v for k, v in fields.items() if v or v == 0}  # zero and false say something


def overlaid(fields: dict[str, Json], extra: Extra) -> dict[str, Json]:
    """`fields` with `extra` laid over it, objects within objects included."""
    for key, value in extra.items():
        under = fields.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            value = overlaid(dict(under), value)
        fields[key] = value
    return fields
