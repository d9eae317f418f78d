"""Providers built from the catalogue: by name with keys from the environment, or from a DSN.

They exist without a key or an address, and say what to set when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from understudy.providers.base import Provider
from understudy.providers.catalogue import VENDORS, Vendor, base_url, by_name, key_in, url_in
from understudy.providers.dsn import DSN, variable_for
from understudy.providers.transport import Origin


class Place(NamedTuple):
    """Where a vendor is and how it knows us; and how to say either, if it was not said."""

    url: str
    key: str
    hint: str


def built_in(name: str, env: Mapping[str, str]) -> Provider | None:
    """The vendor of that name, with or without credentials; None if there is no such row."""
    vendor = by_name().get(name)
    if vendor is None:
        return None
    place = Place(url_in(vendor, env), key_in(vendor, env), " or ".join(vendor.keys))
    return _build(name, vendor, place, env, partial(key_in, vendor, env))


def schemes(env: Mapping[str, str]) -> Mapping[str, Callable[[str, DSN], Provider]]:
    """What each DSN scheme builds: one per row."""
    return {vendor.name: _scheme(vendor, env) for vendor in VENDORS}


def _scheme(vendor: Vendor, env: Mapping[str, str]) -> Callable[[str, DSN], Provider]:
    def build(name: str, dsn: DSN) -> Provider:
        # The vendor's own variable is not looked at: its key is not for another address.
        hint = f"a token: {variable_for(name)}={vendor.name}://token@host[/path]"
        return _build(name, vendor, Place(base_url(vendor, dsn), dsn.token, hint), env)

    return build


def _build(
    name: str,
    vendor: Vendor,
    place: Place,
    env: Mapping[str, str],
    key_now: Callable[[], str] | None = None,
) -> Provider:
    from understudy.providers.http import HttpProvider, Settings, transport_to

    lost = _lost(name, vendor, place)
    settings = Settings(
        auth=vendor.auth,
        quirks=vendor.quirks,
        missing=lost or _keyless(name, vendor, place),
        vendor=vendor.name,
        root=vendor.root,
        key_now=None if lost else key_now,
        transport=transport_to("" if lost else place.url, env),
    )
    return HttpProvider(
        name, dialect=vendor.dialect, base_url=place.url, api_key=place.key, settings=settings
    )


def _lost(name: str, vendor: Vendor, place: Place) -> str:
    """Why nobody knows where it is; "" if somebody does."""
    if not place.url:
        where = f"{variable_for(name)}={vendor.name}://[token@]host"
        return f"no address for provider {name!r}; set {where}"
    if "@" in place.url.partition("://")[2].partition("/")[0]:
        return f"no host for provider {name!r}: only one @ may stand in its DSN, behind the token"
    Origin.from_url(place.url)  # which raises what else is wrong with it
    return ""


def _keyless(name: str, vendor: Vendor, place: Place) -> str:
    if vendor.key_needed and not place.key:
        return f"no key for provider {name!r}; set {place.hint}"
    return ""
