"""Every fault a provider can show, by name. Data only: see `named.Named` for what a row says."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from understudy.core.errors import UnderstudyError
from understudy.rehearse import rows_status, rows_wire
from understudy.rehearse.named import Named

ROWS: tuple[Named, ...] = (*rows_wire.ROWS, *rows_status.ROWS)
CATALOGUE: Mapping[str, Named] = MappingProxyType({row.name: row for row in ROWS})


class UnknownFault(UnderstudyError, LookupError):
    """A name the catalogue does not have; says the nearest one it has."""


def named(name: str) -> Named:
    """The row of that name."""
    row = CATALOGUE.get(name)
    if row is None:
        raise UnknownFault(f"unknown fault {name!r}{nearest(name)}")
    return row


def nearest(name: str) -> str:
    near = get_close_matches(name, CATALOGUE, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; see `understudy fake --list`"
