"""The dashboard under strain, and for everybody: lost lines, keys, thousands of rows, phones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("playwright.async_api", reason="playwright is not installed")

from playwright.async_api import Page, expect

from tests.ui.scene import playing, record, scene, troubled
from tests.ui.stage import CHROMIUM, Theatre, card, rows

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"


# -- how it holds


def test_a_lost_connection_shows_and_heals(theatre: Theatre) -> None:
    async def work() -> None:
        first = scene()
        await first.listen()
        async with theatre.visit(first.address, forgiving=True) as page:
            await first.close()
            await expect(page.locator("#link")).to_have_text("reconnecting…")
            second = scene()
            second.alias("reborn", "house/piano")
            await second.listen(first.port)
            try:
                await expect(page.locator("#link")).to_have_text("live")
                await expect(card(page, "reborn").locator(".state")).to_have_text("healthy")
            finally:
                await second.close()

    theatre.run(work())


def test_where_a_key_is_needed_the_page_asks_and_keeps_it_in_the_tab(theatre: Theatre) -> None:
    async def work() -> None:
        async with (
            playing(admin_key="sk-admin") as played,
            theatre.visit(played.address, connected=False) as page,
        ):
            ask = page.locator("#ask")
            await expect(ask).to_contain_text("send the admin key as Authorization: Bearer")
            await ask.get_by_label("Key").fill("sk-admin")
            await ask.get_by_role("button", name="Use it").click()
            await expect(page.locator("#link")).to_have_text("live")
            await page.get_by_label("Target to bench").fill("house/piano")
            await page.locator("#ledger").get_by_role("button", name="Bench", exact=True).click()
            await expect(card(page, "demo", 2)).to_have_attribute("data-state", "benched")
            kept = await page.evaluate("[Object.values(sessionStorage), {...localStorage}]")
            assert kept == [["sk-admin"], {}]
            assert "sk-admin" not in await page.content()

    theatre.run(work())


def test_a_wrong_key_is_asked_for_again(theatre: Theatre) -> None:
    async def work() -> None:
        async with (
            playing(admin_key="sk-admin") as played,
            theatre.visit(played.address, connected=False, forgiving=True) as page,
        ):
            for key, after in (("sk-wrong", "barred"), ("sk-admin", "live")):
                await page.locator("#secret").fill(key)
                await page.get_by_role("button", name="Use it").click()
                await expect(page.locator(f"#link[data-link={after}]")).to_be_visible()
                await expect(page.locator("#secret")).to_have_value(
                    "" if after == "barred" else key
                )
            await expect(page.locator("#link")).to_have_text("live")

    theatre.run(work())


def test_ten_thousand_requests_stay_a_small_page(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            now = time.time()  # noqa: TID251 - the page shows the last two minutes
            for n in range(10_000):
                played.runtime.past.finished(record(n, now - (10_000 - n) / 100))
            async with theatre.visit(played.address) as page:
                table = page.locator(".requests")
                await expect(table).to_have_attribute("aria-rowcount", "10001")
                assert await page.evaluate("document.querySelectorAll('*').length") < 1200
                await expect(page.locator("#facts")).to_contain_text("10,000 requests remembered")
                await page.evaluate("document.querySelector('.rows').scrollTop = 1e9")
                last = page.locator('.rows .row[aria-rowindex="10001"]')
                await last.get_by_role("button").click()
                await expect(page.locator("#sheet code").last).to_have_text("r-0")
                await page.keyboard.press("Escape")
                await page.locator("[data-filter=failed]").click()
                await expect(page.locator("#requests .empty")).to_be_visible()

    theatre.run(work())


def test_of_many_marked_keys_those_that_sit_out_come_first_and_orders_stay_near(
    theatre: Theatre,
) -> None:
    async def work() -> None:
        async with playing() as played:
            health = played.runtime.gateway.house.registry.health
            for n in range(300):
                health.bench(f"house/m{n:03}", 0.001)
            health.bench("understudy/z", 600)
            async with theatre.visit(played.address) as page:
                marks = page.locator("#ledger .marks > li")
                await expect(marks).to_have_count(301)
                await expect(marks.first.locator("code")).to_have_text("understudy/z")
                await expect(page.locator("#headline")).to_contain_text("understudy/z sits out")
                form = await page.locator("#ledger .bench-form").bounding_box()
                assert form is not None
                assert form["y"] < 1500

    theatre.run(work())


def test_who_reads_further_down_is_not_pushed_away(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            for n in range(100):
                played.runtime.past.finished(record(n, float(n)))
            async with theatre.visit(played.address) as page:
                await expect(page.locator(".requests")).to_have_attribute("aria-rowcount", "101")
                place = "document.querySelector('.rows').scrollTop"
                await page.evaluate(f"{place} = 760")
                await played.chat("demo")
                await expect(page.locator(".requests")).to_have_attribute("aria-rowcount", "102")
                assert await page.evaluate(place) == 760 + 38

    theatre.run(work())


# -- for everybody


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1440, "dark")])
def test_it_fits_the_screen_in_both_themes(theatre: Theatre, width: int, scheme: str) -> None:
    async def work() -> None:
        async with playing() as played:
            troubled(played)
            played.alias("a-rather-long-name-for-a-chain-of-models", "house/" + "x" * 90)
            await played.chat("ill")
            dark = scheme == "dark"
            async with theatre.visit(
                played.address, width, scheme="dark" if dark else "light"
            ) as page:
                await expect(rows(page).first).to_be_visible()
                assert await page.evaluate("document.documentElement.scrollWidth") == width
                paper = "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/)[0] < 100"
                assert await page.evaluate(paper) is dark
                await page.locator("#theme").click()
                assert await page.evaluate(paper) is not dark
                await page.reload()
                assert await page.evaluate(paper) is not dark
                await card(page, "ill").get_by_role("button", name="why?").click()
                await expect(page.locator("#sheet .plan-list")).to_be_visible()
                assert await page.evaluate("document.documentElement.scrollWidth") == width

    theatre.run(work())


def test_the_keyboard_is_enough(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            focus = "document.activeElement.getAttribute('aria-label')"
            for _ in range(12):
                await page.keyboard.press("Tab")
                if await page.evaluate(focus) == "why? lead/opera":
                    break
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert await page.evaluate(outline) == "solid"
            await page.keyboard.press("Enter")
            await expect(page.locator("#sheet .plan-list")).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(page.locator("#sheet")).not_to_be_visible()
            assert await page.evaluate(focus) == "why? lead/opera"
            await played.order("bench", key="lead/opera", seconds=60)
            await expect(card(page, "demo")).to_have_attribute("data-state", "benched")
            assert await page.evaluate(focus) == "why? lead/opera"

    theatre.run(work())


@pytest.mark.skipif(not AXE.exists(), reason="axe-core: npm install --prefix tests/ui")
@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1440, "light")])
def test_axe_finds_nothing(theatre: Theatre, width: int, scheme: str) -> None:
    async def work() -> list[object]:
        async with playing() as played:
            troubled(played)
            await played.chat("ill")
            await played.chat("demo", stream=True)
            async with theatre.visit(
                played.address,
                width,
                scheme="dark" if scheme == "dark" else "light",
                bypass_csp=True,
            ) as page:
                await expect(rows(page).first).to_be_visible()
                await page.evaluate(AXE.read_text(encoding="utf-8"))
                found = await violations(page)
                await card(page, "ill").get_by_role("button", name="why?").click()
                await expect(page.locator("#sheet .plan-list")).to_be_visible()
                return found + await violations(page)

    assert theatre.run(work()) == []


async def violations(page: Page) -> list[object]:
    found: list[object] = await page.evaluate(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html).slice(0, 3)]))"
    )
    return found
