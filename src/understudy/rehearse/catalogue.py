"""Every fault a provider can show, by name. Data only: see `named.Named` for what a row says."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from understudy.core.words import meant
from understudy.rehearse import rows_status, rows_wire
from understudy.rehearse.named import Named

ROWS: tuple[Named, ...] = (*rows_wire.ROWS, *rows_status.ROWS)
CATALOGUE: Mapping[str, Named] = MappingProxyType({row.name: row for row in ROWS})


def suggestion(name: str) -> str:
    """The end of a sentence about a name that is not in the catalogue."""
    return f"; {meant(name, CATALOGUE) or 'see `understudy fake --list`'}"
