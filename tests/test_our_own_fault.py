"""Our own machine is out of something: the request fails, and no target is blamed for it."""

from __future__ import annotations

import errno
import socket
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rig import Play
from understudy import AVAILABILITY, FAIL_FAST, Fault, Policy, ProviderError
from understudy.core.errors import OURS, is_ours
from understudy.core.policy import Then
from understudy.providers.transport import Origin
from understudy.providers.trouble import trouble

FULL = OSError(errno.EMFILE, "Too many open files")
THEIRS = (
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    OSError(errno.EHOSTUNREACH, "No route to host"),
    OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
    socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
    TimeoutError("timed out"),
)


@pytest.mark.parametrize("policy", [FAIL_FAST, AVAILABILITY])
def test_without_a_file_left_the_chain_moves_on_at_once_and_marks_nobody(policy: Policy) -> None:
    play = Play(policy=policy).script(a=[FULL], b=["hi"])
    assert (play.ask(), play.told) == ("hi", ["p/a=transient", "p/b=ok"])
    assert play.health.snapshot() == {}


def test_a_hundred_requests_without_files_leave_every_target_as_healthy_as_before() -> None:
    play = Play().script(a=[FULL] * 100, b=[FULL] * 100)
    assert {play.ask() for _ in range(100)} == {"exhausted"}
    assert play.health.snapshot() == {}
    assert (play.ask(), play.told) == ("hello from p/a", ["p/a=ok"])


def test_where_the_chain_goes_is_still_the_tables_word() -> None:
    stops = replace(FAIL_FAST.rules[Fault.TRANSIENT], then=Then.STOP)
    policy = replace(FAIL_FAST, rules={**FAIL_FAST.rules, Fault.TRANSIENT: stops})
    play = Play(policy=policy).script(a=[FULL], b=["hi"])
    assert (play.ask(), play.told) == ("stopped: transient", ["p/a=transient"])
    assert play.health.snapshot() == {}


def test_what_was_held_against_a_target_stays_as_it_is() -> None:
    play = Play().script(a=[503, FULL, 503], b=["one", "two"])
    play.health.report_failure("p/b")
    assert play.ask() == "one"  # 503, retried: no file
    assert play.told == ["p/a=transient", "p/a=transient", "p/b=ok"]
    assert play.health.snapshot()["p/a"].failures == 1
    assert play.ask() == "two"
    assert not play.health.available("p/a")


@pytest.mark.parametrize("number", sorted(OURS))
def test_the_transport_says_where_the_trouble_is(number: int) -> None:
    error = trouble(OSError(number, "out of it"), Origin.from_url("http://host:1"), sent=False)
    assert is_ours(error)
    assert error.message == "host:1 cannot be reached from here (out of it)"


@pytest.mark.parametrize("error", THEIRS, ids=lambda e: type(e).__name__ + str(e.errno))
def test_what_happens_on_the_way_is_not_our_machines_fault(error: OSError) -> None:
    told = trouble(error, Origin.from_url("http://host:1"), sent=False)
    assert not is_ours(told)
    assert "from here" not in told.message


@given(st.lists(st.booleans(), max_size=6))
def test_it_is_found_behind_whatever_wraps_it(by_cause: list[bool]) -> None:
    error: BaseException = FULL
    for cause in by_cause:
        outer = ProviderError(message="wrapped")
        if cause:
            outer.__cause__ = error
        else:
            outer.__context__ = error
        error = outer
    assert is_ours(error)


def test_causes_that_lead_in_a_circle_are_followed_only_so_far() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert not is_ours(one)
