"""The live feed and the files behind the dashboard: who may read them, what comes, what is cut."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files

import pytest

from tests.gateway.desk import Line, Told
from tests.rig import run, until
from tests.ui.scene import Scene, playing, record
from understudy.core.target import Attempt
from understudy.gateway.app import Gateway
from understudy.gateway.build import demo_house
from understudy.gateway.feed import BEATS, LISTENERS, SHOWN, SLICE, Feed, View
from understudy.gateway.http import Head, Reply, Request
from understudy.gateway.past import BLOCK, Past
from understudy.providers.fake import Outcome
from understudy.testing import Http, ManualClock

EVENTS = "/understudy/api/events"
BROKE = Http(402, '{"error": {"message": "Insufficient Balance"}}')
LOOPBACK = {b"host": b"127.0.0.1"}


def told(data: bytes) -> list[tuple[str, Told]]:
    """Events by name, as a browser reads them."""
    found = []
    for block in data.decode().split("\n\n")[:-1]:
        name, text = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(text.removeprefix("data: "))))
    return found


def rows(event: Told, name: str) -> list[Told]:
    found = event[name]
    assert isinstance(found, list)
    return found


@asynccontextmanager
async def listening(scene: Scene) -> AsyncIterator[Callable[[str], asyncio.Future[Told]]]:
    """`await next_event("health")` is the next of that name."""
    line = await Line.to(scene.address)
    line.send("GET", EVENTS)
    status, _ = await line.head()
    assert status == 200

    async def next_event(name: str) -> Told:
        while True:
            for kind, event in told(await line.piece()):
                if kind == name:
                    return event

    try:
        yield lambda name: asyncio.ensure_future(next_event(name))
    finally:
        line.close()


def test_the_snapshot_comes_first_then_what_changes() -> None:
    async def work() -> tuple[Told, Told, Told, Told]:
        async with playing() as scene, listening(scene) as next_event:
            hello = await next_event("hello")
            await scene.chat("demo")
            requests = await next_event("requests")
            await scene.order("bench", key="house/piano", seconds=60, why="tuning")
            health = await next_event("health")
            return hello, requests, health, await next_event("rates")

    hello, requests, health, rates = run(work())
    assert [lane["name"] for lane in rows(hello, "lanes")] == ["demo", "steady"]
    (request,) = rows(requests, "requests")
    assert [a["outcome"] for a in rows(request, "attempts")] == ["failed", "failed", "ok"]
    (entry,) = rows(health, "ledger")[-1:]
    assert (entry["key"], entry["source"], entry["why"]) == ("house/piano", "operator", "tuning")
    assert rates["in_flight"] == 0


def test_who_comes_later_is_told_the_past_newest_slice_first() -> None:
    gateway = Gateway(demo_house(ManualClock()))
    past = Past()
    for n in range(SLICE + 3):
        past.finished(record(n, 0.0))
    view = View(Feed(gateway, past))
    pieces = view.past(run(view.unread()))
    slices = [rows(event, "requests") for piece in pieces for _, event in told(piece)]
    assert [len(found) for found in slices] == [SLICE, 3]
    assert (slices[0][-1]["request_id"], slices[1][0]["request_id"]) == (f"r-{SLICE + 2}", "r-0")


def test_who_stays_holds_on_to_nothing_of_the_past() -> None:
    async def work() -> int:
        async with playing() as scene:
            for n in range(2 * BLOCK):
                scene.runtime.past.finished(record(n, 0.0))
            async with listening(scene) as next_event:
                await next_event("rates")
                return sum(isinstance(thing, Attempt) for thing in gc.get_objects())

    gc.collect()
    before = sum(isinstance(thing, Attempt) for thing in gc.get_objects())
    assert run(work()) <= before


def test_under_load_requests_are_all_counted_and_not_all_shown() -> None:
    past = Past()
    view = View(Feed(Gateway(demo_house(ManualClock())), past))
    view.hello([])
    for n in range(500):
        past.finished(record(n, 0.0))
    events = [event for _ in range(BEATS) for event in told(view.news(run(view.unread())))]
    shown = [event for name, event in events if name == "requests"]
    assert [(len(rows(event, "requests")), event["finished"]) for event in shown] == [(SHOWN, 500)]
    (rates,) = [event for name, event in events if name == "rates"]
    assert rates["all"] == {"ok": 500, "failed": 0, "skipped": 0, "over": 500, "first": None}


def test_nothing_is_said_while_nothing_happens() -> None:
    view = View(Feed(Gateway(demo_house(ManualClock())), Past()))
    view.hello([])
    assert view.news(run(view.unread())) == b""


def test_a_bench_that_runs_out_is_news_although_nobody_reports_it() -> None:
    clock = ManualClock()
    gateway = Gateway(demo_house(clock))
    gateway.house.registry.health.bench("lead/opera", 5.0)
    view = View(Feed(gateway, Past()))
    view.hello([])
    clock.advance(4.9)
    before = [name for name, _ in told(view.news(run(view.unread())))]
    clock.advance(0.2)
    after = dict(told(view.news(run(view.unread()))))
    states = [row["state"] for row in rows(rows(after["health"], "lanes")[0], "targets")]
    assert (before, states) == ([], ["unproven", "healthy", "healthy"])


STATES = [
    # state, outcomes of the first target, its credentials, would it be tried
    ("healthy", ["fine"], ("default",), True),
    ("benched", [503, 503], ("default",), False),
    ("degraded", [Http(401)], ("one", "two"), True),
    ("degraded", [Http(401)], ("default",), False),
    ("out_of_credits", [BROKE], ("default",), False),
]


@pytest.mark.parametrize(("state", "outcomes", "credentials", "tried"), STATES)
def test_a_target_has_the_state_its_failures_gave_it(
    state: str, outcomes: list[Outcome], credentials: tuple[str, ...], tried: bool
) -> None:
    async def work() -> Told:
        async with playing() as scene:
            scene.provider("p", credentials=credentials).script("m", *outcomes)
            scene.alias("chain", "p/m, house/piano")
            await scene.chat("chain")
            async with listening(scene) as next_event:
                return await next_event("hello")

    lane = next(lane for lane in rows(run(work()), "lanes") if lane["name"] == "chain")
    row = rows(lane, "targets")[0]
    assert (row["state"], row["tried"]) == (state, tried)
    assert lane["head"] == ("p/m" if tried else "house/piano")


def test_a_spec_that_clients_use_is_drawn_though_it_is_no_alias() -> None:
    async def work() -> list[object]:
        async with playing() as scene:
            await scene.chat("house/piano, understudy/aria")
            async with listening(scene) as next_event:
                return [lane["name"] for lane in rows(await next_event("hello"), "lanes")]

    assert run(work()) == ["demo", "steady", "house/piano, understudy/aria"]


class Deaf:
    """A client that takes nothing."""

    def __init__(self) -> None:
        self.paused = True
        self.resumed: Callable[[], object] | None = None
        self.aborted = False

    def put(self, data: bytes) -> None:
        """It is not read."""

    def abort(self) -> None:
        self.aborted = True


def test_who_takes_nothing_is_cut_off() -> None:
    outlet = Deaf()
    feed = Feed(Gateway(demo_house(ManualClock())), Past(), tick=0.001, patience=0.001)
    request = Request(Head("GET", EVENTS.encode(), LOOPBACK))
    request.peer = "127.0.0.1"
    run(feed.routes()["GET", EVENTS](request, Reply(outlet, True)))  # type: ignore[arg-type]
    assert (outlet.aborted, feed.listeners) == (True, 0)


def test_listeners_are_bounded_and_those_who_leave_make_room() -> None:
    async def work() -> tuple[int, int]:
        async with playing() as scene:
            scene.runtime.feed.listeners = LISTENERS - 1
            async with listening(scene) as next_event:
                await next_event("hello")
                refused = await scene.get(EVENTS)
            await until(lambda: scene.runtime.feed.listeners == LISTENERS - 1)
            return refused.status, scene.runtime.feed.listeners

    assert run(work()) == (503, LISTENERS - 1)


def test_the_feed_ends_when_the_gateway_drains() -> None:
    async def work() -> bytes:
        async with playing() as scene:
            line = await Line.to(scene.address)
            line.send("GET", EVENTS)
            _, headers = await line.head()
            await line.piece()
            scene.runtime.gateway.draining = True
            rest = await line.rest(headers)
            line.close()
            return rest

    assert b"event: hello" not in run(work())


def test_the_feed_needs_the_admin_key_and_the_page_says_so_before_it_asks() -> None:
    async def work() -> list[tuple[int, bytes]]:
        async with playing(admin_key="sk-admin") as scene:
            wrong = {"authorization": "Bearer sk-other"}
            heard = [await scene.get(EVENTS), await scene.get(EVENTS, wrong)]
            heard.append(await scene.get("/understudy/"))
            return [(each.status, each.body) for each in heard]

    (none, missing), (other, wrong), (status, page) = run(work())
    why = b"send the admin key as Authorization: Bearer"
    assert (none, why in missing) == (401, True)
    assert (other, b"this admin key is not the gateway's" in wrong) == (401, True)
    assert (status, b'name="barred" content="' + why in page) == (200, True)


# -- the files


def test_every_file_of_the_package_is_served_with_its_type_and_kept() -> None:
    kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

    async def work() -> None:
        async with playing() as scene:
            page = (await scene.get("/understudy/")).body.decode()
            folder = page.split('href="')[1].split("/")[0]
            for entry in (files("understudy") / "ui").iterdir():
                if entry.name in ("index.html", "openapi.json"):
                    continue
                heard = await scene.get(f"/understudy/{folder}/{entry.name}")
                kind = kinds[entry.name.rpartition(".")[2]]
                assert heard.headers["content-type"].startswith(kind)
                assert "immutable" in heard.headers["cache-control"]
                assert heard.body == entry.read_bytes()
                assert len(heard.body.splitlines()) < 400

    run(work())


def test_the_page_lets_nothing_in_from_elsewhere() -> None:
    async def work() -> tuple[dict[str, str], str]:
        async with playing() as scene:
            heard = await scene.get("/understudy/")
            return heard.headers, heard.body.decode()

    headers, page = run(work())
    policy = headers["content-security-policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "{{" not in page


def test_without_its_slash_the_page_sends_the_browser_on() -> None:
    async def work() -> tuple[int, str]:
        async with playing() as scene:
            heard = await scene.get("/understudy")
            return heard.status, heard.headers["location"]

    assert run(work()) == (308, "understudy/")


def test_an_unknown_path_is_not_told_of_every_file() -> None:
    async def work() -> str:
        async with playing() as scene:
            return (await scene.get("/understudy/nothing")).body.decode()

    said = run(work())
    assert "/understudy/api/events" in said
    assert ".js" not in said
