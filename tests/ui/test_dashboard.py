"""The dashboard as people see it, in headless Chromium, in front of scripted providers."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("playwright.async_api", reason="playwright is not installed")

from playwright.async_api import Locator, Page, expect

from tests.rig import until
from tests.ui.scene import Scene, playing, record, scene
from tests.ui.stage import CHROMIUM, PATIENCE, Theatre
from understudy.testing import HANG, Http

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
BROKE = Http(402, '{"error": {"message": "Insufficient Balance"}}')


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    expect.set_options(timeout=PATIENCE)
    opened = Theatre()
    opened.open()
    yield opened
    opened.close()


def card(page: Page, lane: str, place: int = 0) -> Locator:
    return page.locator(f'.lane[aria-label="Chain {lane}"] .card').nth(place)


def rows(page: Page) -> Locator:
    return page.locator(".rows .row:visible")


def troubled(played: Scene) -> None:
    """A chain of every state that needs a script."""
    played.provider("broke").script("m", BROKE)
    played.provider("locked", credentials=("one", "two")).script("m", Http(401))
    played.provider("dead").script("m", 503, 503)
    played.provider("shaky").script("m", 400)
    played.alias("ill", "broke/m, locked/m, dead/m, shaky/m")


# -- what is seen


def test_chains_are_lanes_of_targets_with_their_states(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            troubled(played)
            health = played.runtime.gateway.house.registry.health
            await played.chat("ill")
            await played.chat("dead/m")
            health.report_failure("shaky/m")
            async with theatre.visit(played.address) as page:
                seen = [card(page, "ill", place) for place in range(4)]
                words = ["out of credits", "degraded credential", "benched", "counting failures"]
                for each, word in zip(seen, words, strict=True):
                    await expect(each.locator(".state")).to_have_text(word)
                await expect(seen[2].locator(".time")).not_to_be_empty()
                await expect(seen[1].locator(".next")).to_be_visible()
                await expect(card(page, "steady").locator(".state")).to_have_text("healthy")

    theatre.run(work())


def test_a_probe_is_seen_while_it_is_under_way(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            fake = played.provider("slow")
            fake.script("m", HANG)
            played.alias("probed", "slow/m")
            played.runtime.gateway.house.registry.health.bench("slow/m", 0.001)
            asking = asyncio.ensure_future(played.chat("probed"))
            await until(lambda: fake.calls or asking.done())
            async with theatre.visit(played.address) as page:
                await expect(card(page, "probed").locator(".state")).to_have_text("probing")
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    theatre.run(work())


def test_a_failover_shows_in_the_timeline_as_it_happens(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            await expect(page.locator("#requests .empty")).to_be_visible()
            await played.chat("demo")
            row = rows(page).first
            await expect(row.locator(".seg")).to_have_count(3)
            kinds = await row.locator(".seg").evaluate_all("s => s.map(e => e.dataset.kind)")
            assert kinds == ["passing", "passing", "ok"]
            await expect(row.locator(".result")).to_have_text("understudy/aria")
            await row.locator(".seg").first.hover()
            await expect(page.locator("#tip")).to_contain_text("lead/opera")
            await expect(page.locator("#tip")).to_contain_text("(503) the lead has lost her voice")
            await expect(page.locator("#headline")).to_contain_text("lead/opera sits out")

    theatre.run(work())


def test_the_numbers_follow(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            for _ in range(4):
                await played.chat("demo", stream=True)
            tile = page.locator('[data-tile="Failover share"] strong')
            await expect(tile).to_have_text("100 %")
            await expect(page.locator(".targets tbody tr")).to_have_count(3)
            lead = page.locator(".targets tbody tr").first
            await expect(lead.locator("th")).to_have_text("lead/opera")
            drawn = lead.locator('[data-chart="attempts"] .failed')
            await expect(drawn).to_have_attribute("d", re.compile("^M"))
            aria = page.locator(".targets tbody tr").nth(1)
            await expect(aria.locator('[data-label="First content"] .number')).to_contain_text("s")

    theatre.run(work())


def test_names_from_outside_stay_text(theatre: Theatre) -> None:
    name = "understudy/<img src=x onerror=alert(1)>"

    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            await played.chat(name)
            await expect(rows(page).first.locator(".model")).to_have_text(name)
            assert await page.locator("main img").count() == 0

    theatre.run(work())


# -- what is done


def test_a_target_is_benched_and_unbenched_by_buttons(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            ledger = page.locator("#ledger")
            await ledger.get_by_label("Target to bench").fill("understudy/aria")
            await ledger.get_by_label("Why").fill("her night off")
            await ledger.get_by_role("button", name="Bench", exact=True).click()
            await expect(card(page, "demo", 1)).to_have_attribute("data-state", "benched")
            await expect(card(page, "demo", 1).locator(".time")).to_contain_text(":")
            await expect(page.locator("#said")).to_contain_text("benched by an operator")
            await expect(ledger.locator(".marks")).to_contain_text("her night off")
            await ledger.get_by_role("button", name="Unbench understudy/aria").click()
            await expect(card(page, "demo", 1)).to_have_attribute("data-state", "healthy")
            await ledger.locator("summary").click()
            entries = ledger.locator(".history li b")
            assert await entries.all_text_contents() == ["clear", "bench"]

    theatre.run(work())


def test_what_cannot_be_benched_is_said_in_the_gateways_words(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address, forgiving=True) as page:
            form = page.locator("#ledger .bench-form")
            await form.get_by_label("Target to bench").fill("nobody/x")
            await form.get_by_role("button").click()
            heard = await played.order("bench", key="nobody/x", seconds=600)
            await expect(form.locator(".told")).to_have_text(str(heard.error["message"]))

    theatre.run(work())


def test_a_typed_spec_is_planned(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address, forgiving=True) as page:
            await played.order("bench", key="house/piano", seconds=600, why="tuning")
            box = page.locator("#plan")
            await box.locator("input").fill("house/piano, understudy/aria")
            await box.get_by_role("button", name="Plan").click()
            lines = box.locator(".plan-list li")
            await expect(lines.first.locator(".verdict")).to_have_text("skip")
            await expect(lines.first).to_contain_text("benched by an operator")
            await expect(lines.nth(1)).to_contain_text("healthy, up to 2 attempts")
            await played.order("unbench", key="house/piano")
            await expect(lines.first.locator(".verdict")).to_have_text("try")
            await box.locator("input").fill("nonsense")
            await box.get_by_role("button", name="Plan").click()
            heard = await played.get("/understudy/api/plan?model=nonsense")
            await expect(box.locator(".told")).to_have_text(str(heard.error["message"]))

    theatre.run(work())


# -- why


def test_why_on_a_target_says_what_the_plan_says(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            await played.chat("demo")
            played.runtime.gateway.house.registry.health.bench("lead/opera", 1e9, "no voice")
            await card(page, "demo").get_by_role("button", name="why?").click()
            heard = await played.get("/understudy/api/plan?model=demo")
            sheet = page.locator("#sheet")
            await expect(sheet.locator(".sentence")).to_contain_text(
                "skip: benched by an operator"
            )
            await expect(sheet.locator(".sentence")).to_contain_text("no voice")
            assert "benched by an operator" in heard.body.decode()
            await expect(sheet).to_contain_text("(503) the lead has lost her voice")
            await sheet.get_by_role("button", name="Unbench").click()
            await expect(card(page, "demo")).to_have_attribute("data-state", "healthy")

    theatre.run(work())


def test_why_on_a_failed_request_says_what_its_client_was_told(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            played.provider("dead").script("m", 503, 503)
            heard = await played.chat("dead/m")
            await rows(page).first.get_by_role("button", name="why?").click()
            sheet = page.locator("#sheet")
            await expect(sheet.locator(".sentence")).to_have_text(str(heard.error["message"]))
            await expect(sheet.locator(".story li")).to_have_count(2)
            await expect(sheet.locator(".story li").nth(1)).to_contain_text("benched for 5 s")

    theatre.run(work())


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
                played.runtime.feed.finished(record(n, now - (10_000 - n) / 100))
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


def test_who_reads_further_down_is_not_pushed_away(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            for n in range(100):
                played.runtime.feed.finished(record(n, float(n)))
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
