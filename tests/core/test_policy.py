"""The policy table is complete and says what the design says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from understudy.core.faults import Fault
from understudy.core.policy import (
    AVAILABILITY,
    DETERMINISTIC,
    FAIL_FAST,
    POLICIES,
    Mark,
    Policy,
    Retry,
    Then,
)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("fault", Fault)
def test_every_fault_has_a_row_in_every_policy(policy: Policy, fault: Fault) -> None:
    assert policy.rule(fault).then in Then


def test_a_policy_with_a_missing_row_is_refused_by_name() -> None:
    rows = {fault: rule for fault, rule in FAIL_FAST.rules.items() if fault != Fault.AUTH}
    with pytest.raises(ValueError, match="'mine' has no row for auth"):
        Policy("mine", rows)


def test_exactly_these_thirteen_faults() -> None:
    assert [str(fault) for fault in Fault] == [
        "unknown", "transient", "rate_limit", "auth", "out_of_credits", "context_length",
        "permanent", "empty_content", "stall_pre_first_byte", "stall_mid_stream",
        "client_disconnect", "model_not_found", "unsupported",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "stops"),
    [
        (FAIL_FAST, {"auth", "permanent", "stall_mid_stream", "client_disconnect"}),
        (AVAILABILITY, {"permanent", "stall_mid_stream", "client_disconnect"}),
        (
            replace(FAIL_FAST, advance_on_permanent=True),
            {"stall_mid_stream", "client_disconnect"},
        ),
        (DETERMINISTIC, set()),
    ],
)
def test_who_stops_the_chain(policy: Policy, stops: set[str]) -> None:
    assert {str(f) for f in Fault if policy.rule(f).then is Then.STOP} == stops


def test_overflow_goes_to_larger_windows_unless_told_to_advance() -> None:
    assert FAIL_FAST.rule(Fault.CONTEXT_LENGTH).then is Then.LARGER
    bold = replace(AVAILABILITY, advance_on_permanent=True)
    assert bold.rule(Fault.CONTEXT_LENGTH).then is Then.ADVANCE


@pytest.mark.parametrize(
    ("policy", "retried"),
    [
        (FAIL_FAST, {"unknown": "yes", "transient": "yes", "rate_limit": "unhinted"}),
        (AVAILABILITY, {"unknown": "yes", "transient": "yes"}),
        (DETERMINISTIC, {}),
    ],
)
def test_what_is_retried(policy: Policy, retried: dict[str, str]) -> None:
    rows = {str(f): str(policy.rule(f).retry) for f in Fault}
    assert {f: r for f, r in rows.items() if r != Retry.NEVER} == retried


def test_who_is_blamed() -> None:
    marks = {str(f): FAIL_FAST.rule(f).mark for f in Fault}
    counted = {f for f, mark in marks.items() if mark is Mark.COUNT}
    assert counted == {
        "unknown", "transient", "empty_content", "stall_pre_first_byte", "stall_mid_stream",
    }  # fmt: skip
    assert marks["rate_limit"] is Mark.HINT
    assert marks["auth"] is Mark.DEGRADE
    assert marks["out_of_credits"] is Mark.SESSION
    assert AVAILABILITY.rule(Fault.RATE_LIMIT).mark is Mark.HOLD


def test_a_policy_cannot_be_changed_through_its_table() -> None:
    with pytest.raises(TypeError):
        FAIL_FAST.rules[Fault.AUTH] = FAIL_FAST.rules[Fault.TRANSIENT]  # type: ignore[index]
