"""Three processes, skewed clocks, a wire that loses, repeats, reorders: laws for any history."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.share.wire import Host, Letter, Wire
from understudy.core.faults import Fault
from understudy.core.health import Bench
from understudy.share.notes import Fact, Notes
from understudy.share.telling import HEAD_START
from understudy.testing import ManualClock

KEYS = ("p/a", "p#k")
LATE_MOST = 50.0  # seconds; what is under way for longer is lost
WHO = st.integers(0, 2)
KEY = st.sampled_from(KEYS)


class Fleet(RuleBasedStateMachine):
    """Attempts succeed and fail, operators interfere, processes are replaced, time passes."""

    @initialize(skews=st.lists(st.floats(-1000, 100_000), min_size=3, max_size=3))
    def begin(self, skews: list[float]) -> None:
        self.wire = Wire(ManualClock())
        self.skews = skews
        self.hosts = [Host(self.wire, n, skew, probe=True) for n, skew in enumerate(skews)]
        self.wire.settle()
        self.longest = dict.fromkeys(KEYS, 0.0)  # seconds that any entry ever said
        self.latest = dict.fromkeys(KEYS, float("-inf"))  # true time at which the last one ends
        self.lost = False
        self.longest_way = 0.0  # seconds that a message was under way
        self.hops = 1  # how often a fact was passed on at most
        for host in self.hosts:
            host.health.listen(self._noted(host))

    def _arrives(self, letter: Letter) -> None:
        self.longest_way = max(self.longest_way, self.wire.clock() - letter.at)

    @property
    def slack(self) -> float:
        """Seconds by which an end may be wrong: nobody knows how long a first message took."""
        return HEAD_START + self.hops * self.longest_way + 1e-6

    def _noted(self, host: Host):  # type: ignore[no-untyped-def]
        def told(change) -> None:  # type: ignore[no-untyped-def]
            bench = change.bench
            if bench is not None and bench.source != "remote":
                self.longest[bench.key] = max(self.longest[bench.key], bench.until - bench.since)
                end = bench.until - host.skew
                self.latest[bench.key] = max(self.latest[bench.key], end)

        return told

    @rule(who=WHO, key=KEY)
    def an_attempt_fails(self, who: int, key: str) -> None:
        host = self.hosts[who]
        if host.health.admit(key):
            host.health.report_failure(key, host.now(), fault=Fault.TRANSIENT)

    @rule(who=WHO, key=KEY)
    def an_attempt_succeeds(self, who: int, key: str) -> None:
        host = self.hosts[who]
        if host.health.admit(key):
            host.health.report_success(key, host.now())
            assert host.health.available(key)

    @rule(who=WHO, key=KEY, seconds=st.floats(0.5, 60))
    def a_provider_says_when_to_come_back(self, who: int, key: str, seconds: float) -> None:
        host = self.hosts[who]
        if host.health.admit(key):
            now = host.now()
            host.health.hold(
                Bench(key, now, now + seconds, Fault.RATE_LIMIT, source="header"), now
            )

    @rule(who=WHO, key=KEY, seconds=st.floats(0.5, 100))
    def an_operator_benches(self, who: int, key: str, seconds: float) -> None:
        self.hosts[who].health.bench(key, seconds, "mending")

    @rule(who=WHO, key=KEY)
    def an_operator_clears(self, who: int, key: str) -> None:
        self.hosts[who].health.unbench(key)
        assert self.hosts[who].health.available(key)

    @rule(seconds=st.floats(0.001, 10))
    def time_passes(self, seconds: float) -> None:
        self.wire.clock.advance(seconds)
        late = self.wire.clock() - LATE_MOST
        kept = [letter for letter in self.wire.under_way if letter.at > late]
        self.lost |= len(kept) < len(self.wire.under_way)
        self.wire.under_way = kept

    @rule(data=st.data(), copies=st.integers(0, 2))
    def a_message_arrives_or_not_and_perhaps_again(self, data: st.DataObject, copies: int) -> None:
        if self.wire.under_way:
            place = data.draw(st.integers(0, len(self.wire.under_way) - 1))
            letter = self.wire.under_way.pop(place)
            self.lost |= copies == 0
            self._arrives(letter)
            for _ in range(copies):
                self.wire.deliver(letter)
            if copies == 2:
                self.wire.under_way.append(letter)

    @rule(who=WHO)
    def a_process_is_replaced(self, who: int) -> None:
        host = Host(self.wire, who, self.skews[who], probe=True)
        host.health.listen(self._noted(host))
        self.hosts[who] = host
        self.lost = True
        self.hops += 1

    @rule()
    def all_is_delivered(self) -> None:
        """And whoever missed something has noticed that the link was cut."""
        for letter in self.wire.under_way:
            self._arrives(letter)
        self.wire.settle()
        if self.lost:
            for host in self.hosts:
                host.returns()
            self.wire.settle()
            self.lost = False
            self.hops += 1
        for key in KEYS:
            self._agree(key)

    def _agree(self, key: str) -> None:
        standing = [host.sharing._notes.standing(key) for host in self.hosts]
        assert len({fact is None for fact in standing}) == 1
        now = self.wire.clock()
        ends = [max(now, host.until(key)) for host in self.hosts]
        assert max(ends) - min(ends) <= self.slack

    @invariant()
    def nobody_is_benched_longer_than_the_longest_entry_says(self) -> None:
        if not hasattr(self, "hosts"):
            return
        now = self.wire.clock()
        for host in self.hosts:
            for key in KEYS:
                until = host.until(key)
                assert until - now <= self.longest[key] + HEAD_START + 1e-6
                assert until <= self.latest[key] + self.slack

    @invariant()
    def trackers_hold_what_the_notes_say(self) -> None:
        if not hasattr(self, "hosts"):
            return
        for host in self.hosts:
            for key in KEYS:
                held, fact = host.health.standing(key), host.sharing._notes.standing(key)
                runs = None if held is None or held.until <= host.now() else held.until
                due = None if fact is None or fact.until <= host.now() else fact.until
                assert runs == due


def fact(stamp: int, kind: str, seconds: int) -> Fact:
    bench = None if kind == "clear" else Bench("p/a", 0.0, float(seconds))
    rank = (stamp, "gw")
    return Fact("p/a", rank, "gw", 0.0, float(seconds), bench, order=kind == "order")


@settings(max_examples=300)
@given(st.data())
def test_in_whatever_order_facts_come_the_same_one_counts(data: st.DataObject) -> None:
    one = st.tuples(st.sampled_from(["bench", "order", "clear"]), st.integers(1, 5))
    told = data.draw(st.lists(one, min_size=1, max_size=6))
    facts = [fact(stamp, *kind) for stamp, kind in enumerate(told)]
    final = max((f.rank for f in facts if f.final), default=(-1, ""))
    benches = [f for f in facts if f.bench is not None and f.rank >= final]
    notes = Notes()
    for again in (False, True):
        for one_more in data.draw(st.permutations(facts)):
            assert not (notes.take(one_more, 0.0) and again)
    assert notes.standing("p/a") == max(benches, key=lambda f: (f.until, f.rank), default=None)


TestFleet = Fleet.TestCase
TestFleet.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
