"""Providers built from the catalogue: by name with keys from the environment, or from a DSN."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from understudy.providers.base import Provider
from understudy.providers.catalogue import VENDORS, Vendor, base_url, by_name, key_in, url_in
from understudy.providers.dsn import DSN


def built_in(name: str, env: Mapping[str, str]) -> Provider | None:
    """The vendor of that name, with or without credentials; None if there is no such row."""
    vendor = by_name().get(name)
    return (
        None
        if vendor is None
        else _build(name, vendor, url_in(vendor, env), key_in(vendor, env), env)
    )


def schemes(env: Mapping[str, str]) -> Mapping[str, Callable[[str, DSN], Provider]]:
    """What each DSN scheme builds: one per row."""
    return {vendor.name: _scheme(vendor, env) for vendor in VENDORS}


def _scheme(vendor: Vendor, env: Mapping[str, str]) -> Callable[[str, DSN], Provider]:
    def build(name: str, dsn: DSN) -> Provider:
        return _build(name, vendor, base_url(vendor, dsn), dsn.token, env)

    return build


def _build(name: str, vendor: Vendor, url: str, key: str, env: Mapping[str, str]) -> Provider:
    from understudy.providers.http import HttpProvider

    return HttpProvider.of_vendor(name, vendor, base_url=url, api_key=key, env=env)
