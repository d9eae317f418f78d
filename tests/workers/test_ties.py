"""What several workers count of their ties to other hosts, as one."""

from __future__ import annotations

import pytest

from tests.workers.test_sums import read
from understudy.core.health import HealthTracker
from understudy.observe.metrics import Metrics, Shared
from understudy.observe.sums import added, lasting
from understudy.testing import ManualClock


def counted(shared: Shared) -> str:
    health = HealthTracker(clock=ManualClock())
    return Metrics(lambda: 0, lambda: health, shared=lambda: shared).text().decode()


@pytest.mark.parametrize(("one", "other", "both"), [(True, True, 1), (True, False, 0)])
def test_the_machine_is_as_well_connected_as_its_worst_worker(
    one: bool, other: bool, both: int
) -> None:
    texts = [counted(Shared(connected=up, limits=up)) for up in (one, other)]
    found = read(added(texts))
    assert found["understudy_share_connected", ()] == both
    assert found["understudy_limits_shared", ()] == both


def test_messages_and_requests_on_ones_own_add_up_those_of_the_dead_included() -> None:
    text = counted(Shared({"sent": 2, "taken": 1}, True, {"requests": 5}, False))
    found = read(added([text, text, lasting(text)]))
    assert found["understudy_share_messages_total", (("direction", "sent"),)] == 6
    assert found["understudy_share_messages_total", (("direction", "taken"),)] == 3
    assert found["understudy_limits_open_total", (("limit", "requests"),)] == 15
    assert found["understudy_limits_shared", ()] == 0


def test_without_ties_there_is_nothing_that_could_alarm_anybody() -> None:
    names = {name for name, _ in read(added([counted(Shared())] * 2))}
    assert not {name for name in names if "share" in name or "limits" in name}
