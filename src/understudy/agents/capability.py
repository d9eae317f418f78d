"""What an agent can do: an intent's name and version, `"*"` standing for any of either."""

from __future__ import annotations

import msgspec

ANY = "*"


class Capability(msgspec.Struct, frozen=True):
    """One kind of intent. Wildcards are whole words, and only on this side of the match."""

    name: str
    version: str = "1.0"

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and isinstance(self.version, str)):
            what = f"{self.name!r} and {self.version!r}"
            raise TypeError(f"a capability's name and version are texts, not {what}")
        if not (self.name and self.version):
            raise ValueError(f"a capability needs a name and a version, not {str(self)!r}")

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"

    @classmethod
    def of(cls, text: str) -> Capability:
        """From `"name"` (version 1.0) or `"name@version"`; `"*"` alone is anything at all."""
        if text == ANY:
            return cls(ANY, ANY)
        name, at, version = text.rpartition("@")
        return cls(name, version) if at else cls(text)

    def covers(self, name: str, version: str) -> bool:
        return self.name in (name, ANY) and self.version in (version, ANY)
