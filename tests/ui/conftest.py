"""One browser for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def theatre() -> Iterator[object]:
    from playwright.async_api import expect

    from tests.ui.stage import PATIENCE, Theatre

    expect.set_options(timeout=PATIENCE)
    opened = Theatre()
    opened.open()
    yield opened
    opened.close()
