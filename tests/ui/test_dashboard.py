"""The dashboard as people see it, in headless Chromium, in front of scripted providers."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

import pytest

pytest.importorskip("playwright.async_api", reason="playwright is not installed")

from playwright.async_api import expect

from tests.rig import until
from tests.ui.scene import playing, troubled
from tests.ui.stage import CHROMIUM, Theatre, card, rows
from understudy.testing import HANG

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")


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


def test_a_young_gateway_is_not_averaged_over_time_it_has_not_lived(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            for _ in range(40):
                await played.chat("steady")
            tile = page.locator('[data-tile="Requests"] strong')
            await expect(tile).to_have_text(re.compile(r"^[12](\.\d+)?$"))  # 40 in 20 s at first
            await expect(page.locator("#window")).to_contain_text("seconds")

    theatre.run(work())


def test_of_many_chains_those_nobody_can_answer_come_first(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            for n in range(20):
                played.alias(f"team-{n}", f"house/m{n}, understudy/aria")
            health = played.runtime.gateway.house.registry.health
            health.bench("house/m3", 600)
            health.bench("house/m7", 600)
            played.alias("dark", "house/m7")
            async with theatre.visit(played.address) as page:
                names = page.locator(".lane-name")
                await expect(names).to_have_count(8)
                assert (await names.all_text_contents())[:3] == ["dark", "team-3", "team-7"]
                await page.get_by_role("button", name="Show all 23 chains").click()
                await expect(names).to_have_count(23)
                shown = page.locator(".targets tbody tr")
                await expect(shown).to_have_count(12)
                await page.get_by_role("button", name=re.compile("Show all .* targets")).click()
                await expect(shown).to_have_count(23)

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


def test_the_sentence_behind_why_counts_its_seconds_on(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            played.runtime.gateway.house.registry.health.bench("lead/opera", 600, "no voice")
            await card(page, "demo").get_by_role("button", name="why?").click()
            told = page.locator("#sheet .sentence")
            await expect(told).to_contain_text("left of 600 s: no voice")
            first = await told.text_content()
            assert first is not None
            await page.locator("#sheet input[name=why]").fill("half a reason")
            await expect(told).not_to_have_text(first)
            await expect(told).to_contain_text("left of 600 s: no voice")
            kept = page.locator("#sheet input[name=why]")
            await expect(kept).to_have_value("half a reason")
            marked = page.locator("#ledger .marks p")
            await expect(marked).to_have_text(
                re.compile(r"^benched by an operator, \d+ s left of 600 s: no voice$")
            )

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
