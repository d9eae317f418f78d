"""The dashboard in a real browser: Debian's `chromium`, driven by Playwright.

Nothing here sleeps: Playwright waits for what a test expects, bounded by `PATIENCE`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypedDict, TypeVar, Unpack

from playwright.async_api import Browser, Locator, Page, Playwright, async_playwright

T = TypeVar("T")
LOUD = ("error", "warning")
CHROMIUM = Path("/usr/bin/chromium")
PATIENCE = 20_000  # ms; the machine may be busy
FLAGS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Wishes(TypedDict, total=False):
    """How a visit differs from the usual."""

    scheme: Literal["light", "dark"]
    bypass_csp: bool
    forgiving: bool  # its console may complain
    connected: bool  # wait until it is


class Theatre:
    """One browser and one event loop for all tests of a module."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._browser: Browser
        self._driver: Playwright

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self._runner.run(work)

    def open(self) -> None:
        self.run(self._open())

    def close(self) -> None:
        self.run(self._close())
        self._runner.close()

    async def _open(self) -> None:
        self._driver = await async_playwright().start()
        self._browser = await self._driver.chromium.launch(
            executable_path=str(CHROMIUM), args=FLAGS, headless=True
        )

    async def _close(self) -> None:
        await self._browser.close()
        await self._driver.stop()

    @asynccontextmanager
    async def visit(
        self, address: str, width: int = 1440, **more: Unpack[Wishes]
    ) -> AsyncIterator[Page]:
        """The dashboard in a fresh profile. Unless forgiven, its console must stay silent."""
        forgiving, connected = more.get("forgiving", False), more.get("connected", True)
        context = await self._browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=more.get("scheme", "light"),
            bypass_csp=more.get("bypass_csp", False),
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        said: list[str] = []
        page.on("console", lambda m: said.append(m.text) if m.type in LOUD else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        try:
            await page.goto(f"{address}/understudy/")
            if connected:
                await page.wait_for_selector("#link[data-link=live]")
            yield page
        finally:
            await context.close()
        assert forgiving or said == []


def card(page: Page, lane: str, place: int = 0) -> Locator:
    return page.locator(f'.lane[aria-label="Chain {lane}"] .card').nth(place)


def rows(page: Page) -> Locator:
    return page.locator(".rows .row:visible")
