"""Every fault a provider can show, by name. Data only: see `named.Named` for what a row says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from understudy.core.errors import UnderstudyError
from understudy.core.words import meant
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
        raise UnknownFault(f"unknown fault {name!r}{suggestion(name)}")
    return row


def suggestion(name: str) -> str:
    """The end of a sentence about a name that is not in the catalogue."""
    return f"; {meant(name, CATALOGUE) or 'see `understudy fake --list`'}"
