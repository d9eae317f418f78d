"""Is an address this very machine?"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Of a name or an address alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def on_loopback(place: str) -> bool:
    """Of `host[:port][/path]`: by its whole name, not by how it begins."""
    return is_loopback(urlsplit(f"//{place}").hostname or "")
