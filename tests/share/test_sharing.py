"""Stories of processes that share: who is told what, and what is not believed."""

from __future__ import annotations

import math

import msgspec
import pytest

from tests.share.wire import HELLO, End, Host, Wire, done, hosts
from understudy.core.faults import Fault
from understudy.core.health import Bench, HealthTracker
from understudy.share.clocks import JUMP, SENDERS, Lateness, Stamps
from understudy.share.kept import FOREVER, aged, key_of, milliseconds
from understudy.share.message import Message, decode, encode
from understudy.share.notes import KEPT, SWEEP_FLOOR, Fact, Notes
from understudy.share.sharing import Sharing
from understudy.share.telling import HEAD_START

KEY = "p/a"


def fail(host: Host, times: int = 2) -> None:
    for _ in range(times):
        host.health.report_failure(KEY, host.now(), fault=Fault.TRANSIENT)


def reasons(*hosts: Host) -> list[str]:
    return [host.health.snapshot()[KEY].reason for host in hosts]


def test_one_learns_and_all_know_and_nobody_says_it_twice() -> None:
    wire, (one, *others) = hosts()
    fail(one)
    assert len(wire.under_way) == 2
    wire.settle()
    assert [other.sharing.sent for other in others] == [0, 0]
    for reason in reasons(*others):
        assert reason.startswith("benched by another process for transient, ")
        assert reason.endswith("s: learned by gw-0")


def test_a_blip_is_nobody_elses_business() -> None:
    wire, (one, *_) = hosts()
    fail(one, 1)
    one.health.report_success(KEY, one.now())
    assert wire.under_way == []


def test_who_learned_it_tries_first() -> None:
    wire, (one, two, three) = hosts()
    fail(one)
    wire.settle()
    ends = [host.until(KEY) for host in (one, two, three)]
    assert ends[0] == 5.0
    assert all(5.0 + HEAD_START / 2 <= end <= 5.0 + HEAD_START for end in ends[1:])
    assert ends[1] != ends[2]  # and the others one by one, should it say nothing


def test_an_order_ends_for_all_at_once() -> None:
    wire, (one, *others) = hosts()
    one.health.bench(KEY, 60, "mending")
    wire.settle()
    assert [other.until(KEY) for other in others] == pytest.approx([60.0, 60.0])
    assert reasons(others[0]) == [
        "benched by another process, 60 s left of 60 s: ordered at gw-0: mending"
    ]


def test_rounds_go_on_whoever_fails_next() -> None:
    wire, (one, two, three) = hosts()
    for host, length in ((one, 5), (two, 10), (three, 20), (one, 40)):
        fail(host)
        bench = host.health.standing(KEY)
        assert bench is not None
        assert (bench.source, bench.until - bench.since) == ("rule", length)
        wire.settle()
        wire.clock.advance(length + HEAD_START)


def test_a_success_clears_count_and_exponent_everywhere() -> None:
    wire, (one, two, three) = hosts()
    fail(one)
    wire.settle()
    wire.clock.advance(5 + HEAD_START)
    two.health.report_success(KEY, two.now())
    wire.settle()
    assert not any(host.health.snapshot() for host in (one, two, three))


def test_an_order_to_clear_reaches_everybody_also_from_who_knows_of_nothing() -> None:
    wire, (one, two, three) = hosts()
    fail(one)
    wire.under_way.clear()  # lost
    assert not two.health.unbench(KEY)
    wire.settle()
    assert not one.health.snapshot()
    assert not three.health.snapshot()


def test_what_was_under_way_when_the_news_came_neither_counts_nor_clears() -> None:
    wire, (one, two, _) = hosts()
    fail(one)
    wire.clock.advance(0.002)
    began = two.now()  # after the bench began, before the news of it came
    wire.clock.advance(0.002)
    wire.settle()
    assert not two.health.report_failure(KEY, began)
    assert not two.health.report_failure(KEY, began)
    two.health.report_success(KEY, began)
    assert two.health.rounds(KEY) == 1
    assert not two.health.available(KEY)


def test_an_older_bench_does_not_override_a_newer_success() -> None:
    wire, (one, two, _) = hosts()
    fail(two)
    wire.settle()
    wire.clock.advance(5 + HEAD_START)
    fail(one)
    late = wire.under_way.copy()
    wire.under_way.clear()
    wire.clock.advance(0.5)
    two.health.report_success(KEY, two.now())
    for letter in late:
        wire.deliver(letter)
    assert two.health.available(KEY)
    wire.settle()
    assert one.health.available(KEY)


def test_a_shorter_bench_of_another_does_not_shorten_a_providers_own_delay() -> None:
    wire, (one, two, three) = hosts()
    now = one.now()
    one.health.hold(Bench(KEY, now, now + 60, Fault.RATE_LIMIT, source="header"))
    fail(two)
    wire.settle()
    assert [host.until(KEY) >= 60 for host in (one, two, three)] == [True, True, True]


def test_a_late_message_does_not_make_a_bench_longer() -> None:
    wire, (one, two, _) = hosts()
    one.health.bench("p/b", 60)
    wire.settle()  # by this the receiver knows how fast a message can be
    fail(one)
    wire.clock.advance(4)
    wire.settle()
    assert two.until(KEY) <= 5 + HEAD_START
    one.health.bench("p/c", 3)
    wire.clock.advance(4)
    wire.settle()
    assert two.health.available("p/c")


def test_a_newcomer_is_told_what_runs_and_what_is_cleared() -> None:
    wire, (one, two, _) = hosts()
    fail(one)
    one.health.bench("p/b", 60)
    wire.settle()
    two.health.unbench("p/b")
    wire.settle()
    wire.clock.advance(2)
    newcomer = Host(wire, 3, -90.0)
    wire.settle()
    assert list(newcomer.health.snapshot()) == [KEY]
    assert newcomer.until(KEY) <= 5 + HEAD_START
    assert reasons(newcomer)[0].endswith("learned by gw-0")


def test_a_process_that_comes_back_believes_what_it_said_in_its_former_life() -> None:
    wire, (one, two, _) = hosts()
    one.health.bench(KEY, 60)
    wire.settle()
    again = Host(wire, 0, one.skew)
    wire.settle()
    assert not again.health.available(KEY)
    assert not two.health.available(KEY)


def test_after_a_cut_both_sides_tell_what_they_learned_meanwhile() -> None:
    wire, (one, two, three) = hosts()
    one.health.bench("p/b", 60)
    wire.settle()
    one.health.bench(KEY, 60)
    two.health.unbench("p/b")
    wire.under_way.clear()  # cut
    for host in (one, two, three):
        host.returns()
    wire.settle()
    known = {
        (host.health.available(KEY), host.health.available("p/b")) for host in (one, two, three)
    }
    assert known == {(False, True)}


def test_what_is_learned_goes_by_all_links_and_what_comes_by_one_by_none() -> None:
    wire, (one, _, _) = hosts()
    second = Wire(wire.clock)
    stranger = Host(second, 0, 0.0)
    health = HealthTracker(clock=wire.clock)
    both = Sharing(health, [End(wire, 3), End(second, 3)], "gw-3")
    done(both.start())
    wire.settle()
    second.settle()
    fail(one)
    wire.settle()
    assert not health.available(KEY)
    assert second.under_way == []
    health.bench("p/b", 60)
    wire.settle()
    second.settle()
    assert (one.health.available("p/b"), stranger.health.available("p/b")) == (False, False)
    assert stranger.health.available(KEY)


def test_sharing_moves_to_the_tracker_of_a_new_house() -> None:
    wire, (one, two, _) = hosts()
    old, new = one.health, HealthTracker(clock=one.health.clock)
    one.sharing.move(new)
    fail(two)
    wire.settle()
    assert not old.snapshot()
    assert not new.available(KEY)
    old.bench("p/b", 60)
    assert wire.under_way == []
    new.bench("p/b", 60)
    wire.settle()
    assert not two.health.available("p/b")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"\xff",
        b'{"kind":"gossip","origin":"x","stamp":1}',
        b'{"kind":"bench","origin":"x","stamp":1,"left":-1}',
        b'{"kind":"bench","origin":"x","stamp":1e300}',
        b'{"kind":"bench","origin":"x","stamp":1,"key":"' + b"k" * 9000 + b'"}',
    ],
)
def test_nonsense_is_ignored(data: bytes) -> None:
    _, (one, *_) = hosts()
    one.end.receive(data)
    assert not one.health.snapshot()
    assert one.sharing.ignored == 1


def test_words_that_are_not_known_here_do_no_harm() -> None:
    _, (one, *_) = hosts()
    newer = {"kind": "bench", "origin": "x", "stamp": 1, "key": KEY, "left": 9, "host": "gw-9"}
    one.end.receive(msgspec.json.encode({**newer, "fault": "boredom", "scope": "moon", "mood": 1}))
    bench = one.health.standing(KEY)
    assert bench is not None
    assert (bench.fault, bench.scope, bench.source) == (None, "target", "remote")


def test_a_bench_without_end_lasts_until_cleared_everywhere() -> None:
    wire, (one, two, _) = hosts()
    now = one.now()
    one.health.hold(Bench("p#k", now, math.inf, Fault.OUT_OF_CREDITS, "credential"))
    wire.settle()
    bench = two.health.standing("p#k")
    assert bench is not None
    assert (bench.until, bench.scope, bench.fault) == (math.inf, "credential", "out_of_credits")
    two.health.unbench("p#k")
    wire.settle()
    assert not one.health.snapshot()


# -- clocks, notes and what is kept


def test_stamps_grow_and_exceed_all_that_were_heard() -> None:
    stamps = Stamps()
    first = stamps.next(100.0)
    assert stamps.next(100.0) == first + 1
    stamps.heard(10**15, 100.0)
    assert stamps.next(100.0) > 10**15
    assert stamps.next(101.0) >= 10**15 + 1_000_000  # and go on with the clock that is ahead
    stamps.heard(2**53, 102.0)  # as far as numbers go: nobody could ever exceed it
    assert stamps.next(102.0) < 2**53


def test_lateness_is_what_exceeds_the_fastest_of_a_sender() -> None:
    lateness = Lateness()
    assert lateness.of("a", 1000.0, 5.0) == 0.0  # the first: nothing to compare with
    assert lateness.of("a", 1001.0, 9.0) == pytest.approx(3.0, abs=0.01)
    assert lateness.of("a", 1005.0, 9.5) == 0.0  # faster than all before
    assert lateness.of("b", 0.0, 9.5) == 0.0
    assert lateness.of("a", 1006.0, 12.0 + JUMP) == 0.0  # its clock stood still for a while
    for number in range(SENDERS + 5):
        lateness.of(str(number), 0.0, 100.0)
    assert len(lateness._least) == SENDERS


def test_facts_that_are_long_over_are_forgotten() -> None:
    notes = Notes()
    for number in range(3 * SWEEP_FLOOR):
        now = float(number)
        key = f"p/{number}"
        notes.take(Fact(key, (number, "gw"), "gw", now, now + 5, Bench(key, now, now + 5)), now)
    assert len(list(notes.living(now))) < KEPT + 10
    assert len(notes._facts) <= 2 * SWEEP_FLOOR


def test_what_was_kept_is_told_with_what_is_left_of_it() -> None:
    message = Message(kind="bench", origin="gw/1", stamp=7, key=KEY, left=5.0, head=1.0, sent=3.0)
    kept = milliseconds(message)
    assert kept == (5 + KEPT) * 1000
    later = {
        past: decode(aged(message, int(kept - past * 1000))) for past in (0.0, 2.0, 5.5, 90.0)
    }
    told = [(m.left, m.head, m.age, m.sent) for m in later.values() if m is not None]
    assert told == [(5, 1, 0, None), (3, 1, 2, None), (0, 0.5, 5.5, None), (0, 0, 90, None)]
    endless = Message(kind="bench", origin="gw/1", stamp=7, key=KEY)
    assert milliseconds(endless) == FOREVER * 1000
    assert decode(aged(endless, 1000)) is not None
    assert key_of("blue", message) == "understudy:{blue}:bench:p/a:7:gw/1"


def test_a_hello_is_small_and_read_by_all() -> None:
    assert decode(HELLO) == Message(kind="hello", origin="", stamp=0)
    assert decode(encode(Message(kind="clear", origin="x", stamp=1, key=KEY))) is not None
