"""From a spec on the command line to a model: of the environment, or of a gateway's file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from understudy.core.target import Observer
from understudy.gateway.house import House
from understudy.model import Model
from understudy.registry import Registry


@dataclass(frozen=True, slots=True)
class Source:
    """Where providers and aliases come from; a file's policy comes with it."""

    config: str | None
    env: Mapping[str, str]

    def model(self, spec: str, observer: Observer | None = None) -> Model:
        """Raises what reading and parsing raise."""
        if self.config is None:
            return Registry(env=self.env, observer=observer).parse(spec)
        from understudy.portal import Portal

        cast = replace(self.house().cast(spec), observer=observer)
        return Model(spec, cast, Portal())

    def house(self) -> House:
        """Of the file; only where there is one."""
        from understudy.gateway.build import house_of
        from understudy.gateway.config import read_config

        assert self.config is not None
        text = Path(self.config).read_text(encoding="utf-8")
        return house_of(read_config(text, self.env), self.env, time.monotonic)
