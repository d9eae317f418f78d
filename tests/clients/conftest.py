"""One thread for all gateways of this folder; a scene for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.rig import Backstage, Scene, Setting, staged


@pytest.fixture(scope="session")
def backstage() -> Iterator[Backstage]:
    thread = Backstage()
    yield thread
    thread.close()


@pytest.fixture
def scene(request: pytest.FixtureRequest, backstage: Backstage) -> Iterator[Scene]:
    """The setting is the test's own parameter, given with `indirect=True`."""
    setting: Setting = request.param
    with staged(backstage, setting) as ready:
        yield ready
