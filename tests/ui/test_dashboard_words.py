"""What the dashboard says: the same words and times as the core, names whose model can be read."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright.async_api", reason="playwright is not installed")

from playwright.async_api import expect

from tests.ui.scene import BROKE, playing
from tests.ui.stage import CHROMIUM, Theatre, card, rows
from understudy.core.faults import Fault
from understudy.core.health import Bench
from understudy.core.words import in_seconds

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
WORDS = "import(new URL('words.js', document.querySelector('script[type=module]').src))"
TIMES = [0.0, 1e-7, 0.0123456, 0.25, 4.666, 59.96, 99.99, 100, 295.4, 600, 600.0000001]
LONG = [601, 1778, 3600, 3661.7, 7200, 86_399, 86_400, 172_799, 259_199, 259_200, 8.64e7, 1e12]
MODEL = "accounts/fireworks/models/llama-v3p1-405b-instruct-long-context-2026-10-01"
# Nothing of the end is cut off, and some of the beginning is there.
IN_SIGHT = """name => {
  const [stem, end] = ["stem", "end"].map(part => name.querySelector(`.${part}`));
  const [place, room] = [end, name].map(element => element.getBoundingClientRect());
  return stem.getBoundingClientRect().width > 20 && place.right <= room.right + 1;
}"""


def test_the_page_tells_times_as_the_core_does(theatre: Theatre) -> None:
    async def work() -> list[str]:
        async with playing() as played, theatre.visit(played.address) as page:
            script = f"{WORDS}.then((words) => {TIMES + LONG}.map(words.inSeconds))"
            told: list[str] = await page.evaluate(script)
            return told

    assert theatre.run(work()) == [in_seconds(seconds) for seconds in TIMES + LONG]


@pytest.mark.parametrize(
    ("bench", "later"),
    [
        (Bench("p/a", 0.0, 300.0, Fault.AUTH), 296.0),
        (Bench("p#one", 0.0, 300.0, Fault.AUTH, "credential"), 4.0),
        (Bench("p/a", 0.0, 259_200.0, source="operator", why="x, 5 s left of it"), 259_199.0),
        (Bench("p/a", 0.0, 1800.0, Fault.OUT_OF_CREDITS), 1778.0),
        (Bench("p/a", 0.0, float("inf"), why="x, 5 s left of it"), 5.0),
    ],
)
def test_a_sentence_that_counts_on_is_the_core_s_at_that_time(
    theatre: Theatre, bench: Bench, later: float
) -> None:
    async def work() -> str:
        async with playing() as played, theatre.visit(played.address) as page:
            script = f"([reason, left]) => {WORDS}.then((words) => words.sentence(reason, left))"
            told: str = await page.evaluate(script, [bench.sentence(1.5), later])
            return told

    assert theatre.run(work()) == bench.sentence(min(bench.until - later, 1e9))


def test_a_bench_of_days_is_counted_in_days_and_hours(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            await played.order("bench", key="house/piano", seconds=259_198, why="tuning")
            await expect(card(page, "demo", 2).locator(".time")).to_have_text("2 d 23 h")
            told = page.locator("#ledger .marks p")
            await expect(told).to_have_text(
                "benched by an operator, 2 d 23 h left of 2 d 23 h: tuning"
            )
            await page.locator("#ledger summary").click()
            await expect(page.locator(".history p").first).to_contain_text(
                "2 d 23 h · by operator"
            )

    theatre.run(work())


@pytest.mark.parametrize("width", [1280, 400])
def test_of_a_long_name_the_model_stays_in_sight(theatre: Theatre, width: int) -> None:
    async def work() -> None:
        async with playing() as played:
            played.provider("fireworks")
            played.alias("long", f"fireworks/{MODEL}")
            async with theatre.visit(played.address, width) as page:
                await played.chat("long")
                target = f"fireworks/{MODEL}"
                names = {
                    MODEL: card(page, "long").locator(".model"),
                    target: page.locator(".targets .name").filter(has_text="llama"),
                }
                for name, shown in [*names.items(), (target, rows(page).first.locator(".word"))]:
                    await expect(shown).to_have_text(name)  # for whoever copies or listens
                    await expect(shown).to_have_attribute("title", target)
                    assert await shown.evaluate(IN_SIGHT)

    theatre.run(work())


def test_out_of_credits_is_said_once(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played:
            played.provider("broke").script("m", BROKE)
            played.alias("poor", "broke/m, house/piano")
            await played.chat("poor")
            async with theatre.visit(played.address) as page:
                await expect(card(page, "poor").locator(".state")).to_have_text("out of credits")
                await expect(card(page, "poor").locator(".note")).to_have_text("")

    theatre.run(work())


def test_who_is_not_proven_yet_is_not_said_to_answer(theatre: Theatre) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address) as page:
            played.alias("alone", "house/solo")
            played.runtime.gateway.house.registry.health.bench("house/solo", 0.001)
            title = page.locator("#headline")
            await expect(title).to_have_text("Nobody sits out; alone has only unproven targets")
            await expect(title).to_have_attribute("data-mood", "mixed")
            await played.order("bench", key="lead/opera", seconds=60)
            await expect(title).to_have_text(
                "lead/opera sits out; alone has only unproven targets"
            )

    theatre.run(work())


def test_a_share_is_explained_a_link_is_ours_and_a_wrong_name_is_told_in_short(
    theatre: Theatre,
) -> None:
    async def work() -> None:
        async with playing() as played, theatre.visit(played.address, forgiving=True) as page:
            await expect(page.locator("#window")).to_contain_text(
                "failover share: its turns that went on to the next target"
            )
            await page.locator("footer summary").click()
            colour = "element => getComputedStyle(element).color"
            why = card(page, "demo").get_by_role("button", name="why?")
            assert await page.locator("footer a").evaluate(colour) == await why.evaluate(colour)
            form = page.locator("#ledger .bench-form")
            await form.get_by_label("Target to bench").fill("nobody/x")
            await form.get_by_role("button").click()
            told = form.locator(".told")
            await expect(told).to_have_text(re.compile("known here: house, lead, understudy$"))

    theatre.run(work())
