"""One thread for all gateways of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.rig import Backstage


@pytest.fixture(scope="session")
def backstage() -> Iterator[Backstage]:
    thread = Backstage()
    yield thread
    thread.close()
