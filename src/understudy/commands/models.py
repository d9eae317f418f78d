"""`understudy models`: what is known of models and vendors. Asks nobody; unknown stays unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal

from understudy.commands.chains import Source
from understudy.commands.screen import Screen, Table
from understudy.core.target import Target
from understudy.driver import capabilities_of
from understudy.gateway.build import keyless
from understudy.messages.capabilities import Capabilities
from understudy.providers.catalogue import VENDORS, by_name, key_in, url_in
from understudy.providers.facts import facts
from understudy.providers.http import HttpProvider

Row = dict[str, object]


def rows(spec: str, source: Source) -> list[Row]:
    """Of a chain its targets; of nothing, every vendor."""
    if not spec:
        return [vendor_row(vendor.name, source.env) for vendor in VENDORS]
    model = source.model(spec)
    missing = keyless(model.cast)
    found = []
    for candidate in model.cast.chain:
        target = candidate.target
        provider = model.cast.providers[target.provider]
        vendor = provider.settings.vendor if isinstance(provider, HttpProvider) else ""
        takes = capabilities_of(provider, target.model)
        row = model_row(vendor or target.provider, target, takes)
        found.append({**row, "missing": missing.get(target.key)})
    return found


def vendor_row(name: str, env: Mapping[str, str]) -> Row:
    vendor = by_name()[name]
    key = "not needed" if not vendor.key_needed else "set" if key_in(vendor, env) else "not set"
    return {
        "vendor": name,
        "dialect": vendor.dialect,
        "address": url_in(vendor, env),
        "key": key,
        "variables": list(vendor.keys),
    }


def model_row(vendor: str, target: Target, takes: Capabilities) -> Row:
    prices = {
        name: None if price is None else float(price)
        for name, price in asdict(facts(vendor, target.model)).items()
        if name.endswith("_price")
    }
    return {"target": target.key, **asdict(takes), **prices}


def show(found: list[Row], screen: Screen) -> None:
    if found and "vendor" in found[0]:
        table = Table(
            ("vendor", "dialect", "key", "address"),
            [(str(r["vendor"]), str(r["dialect"]), _key(r), str(r["address"])) for r in found],
        )
    else:
        head = ("target", "window", "$/M in", "$/M out", "images", "tools", "schema")
        table = Table(head, [_cells(row) for row in found])
    screen.table(table)
    for row in found:
        if row.get("missing"):
            screen.note(f"{row['target']}: {row['missing']}")


def _key(row: Row) -> str:
    names = row["variables"]
    assert isinstance(names, list)
    return f"{row['key']}: {' or '.join(names)}" if row["key"] == "not set" else str(row["key"])


def _cells(row: Row) -> tuple[str, ...]:
    window, images = row["context_window"], row["max_images"]
    return (
        str(row["target"]),
        "unknown" if window is None else f"{window:,}",
        _price(row["input_price"]),
        _price(row["output_price"]),
        "no limit known" if images is None else "none" if images == 0 else f"up to {images}",
        "yes" if row["tools"] else "no",
        "yes" if row["structured"] else "stated",
    )


def _price(value: object) -> str:
    return "unknown" if value is None else f"{Decimal(str(value)):f}"
