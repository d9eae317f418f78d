"""The public names, and what the binding interface promises of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import ClassVar

import pytest

import understudy as us
from understudy.testing import Fake, ManualClock


def test_every_public_name_exists_and_is_listed_in_order() -> None:
    assert all(getattr(us, name) is not None for name in us.__all__)
    assert us.__all__ == sorted(us.__all__, key=lambda n: (not n.isupper(), n[0].islower(), n))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        us.nonsense  # noqa: B018


@pytest.mark.parametrize("kind", [us.Policy, us.Cooldown, us.Target, us.Request, us.Attempt])
def test_values_are_frozen_dataclasses(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_policies_are_changed_with_replace() -> None:
    calm = dataclasses.replace(us.FAIL_FAST, transient_retries=0)
    assert (calm.transient_retries, us.FAIL_FAST.transient_retries) == (0, 1)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_policies_can_be_copied_sent_hashed_and_told_as_dictionaries(
    again: Callable[[object], object],
) -> None:
    assert again(us.AVAILABILITY) == us.AVAILABILITY
    assert hash(us.AVAILABILITY) != hash(us.FAIL_FAST)
    assert dataclasses.asdict(us.FAIL_FAST)["rules"][us.Fault.AUTH]["then"] == "stop"


def test_a_policy_s_table_cannot_be_changed() -> None:
    row = us.FAIL_FAST.rules[us.Fault.AUTH]
    with pytest.raises(TypeError, match=r"dataclasses\.replace"):
        us.FAIL_FAST.rules[us.Fault.PERMANENT] = row  # type: ignore[index]


def test_errors_survive_the_way_to_another_process() -> None:
    error = us.ProviderError(us.Fault.TRANSIENT, us.Target("p", "m"), 503, message="busy")
    told = us.ChainExhausted([error], [us.Attempt("p/m", "failed", us.Fault.TRANSIENT)], 5.0)
    back = pickle.loads(pickle.dumps(told))
    assert (str(back), back.retry_after, back.attempts) == (str(told), 5.0, told.attempts)
    assert str(back.exceptions[0]) == "failover[p/transient]: status=503: busy"
    stall = us.Stall("mid_stream", "p", 60)
    assert str(pickle.loads(pickle.dumps(stall))) == str(stall)


def test_the_registry_takes_what_the_design_says() -> None:
    us.Registry(
        env={},
        policy=us.FAIL_FAST,
        cooldown=us.Cooldown(threshold=2, base=5.0, factor=2.0, cap=300.0),
        clock=ManualClock(),
        observer=lambda attempt: None,
    )


def test_health_has_the_binding_signatures() -> None:
    health = us.HealthTracker(clock=ManualClock())
    assert health.report_failure("k", started=None) is False
    health.report_success("k", started=None)
    health.bench("k", 5, why="test")
    health.unbench("k")
    assert health.snapshot() == {}


def test_classify_has_the_binding_signature() -> None:
    names = list(inspect.signature(us.classify).parameters)
    assert names[:6] == ["error", "status", "headers", "body", "provider", "stream"]
    assert us.classify().fault is us.Fault.UNKNOWN


def test_a_delay_given_as_a_date_counts_from_now_where_the_answer_has_no_date() -> None:
    headers = {"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}
    assert us.classify(status=429, headers=headers).source == "header"
    assert us.classify(status=429, headers=headers, now=4102444790.0).retry_after == 10


def test_a_foreign_client_s_error_may_name_its_delay_as_a_date_too() -> None:
    class Limited(Exception):
        status_code = 429
        headers: ClassVar = {"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}

    fake = Fake("p").script("a", Limited())
    registry = us.Registry(env={}, clock=ManualClock())
    registry.register_provider(fake)
    reply = registry.parse("p/a, p/b").generate_sync("hi")
    registry.close()
    assert (reply.model, reply.attempts[0].benched) == ("p/b", 300)


def test_a_target_prints_as_its_key() -> None:
    target = us.Target("p", "a/b:c")
    assert (str(target), target.key) == ("p/a/b:c", "p/a/b:c")


def test_a_fake_answers_by_default_and_remembers_its_calls() -> None:
    fake = Fake("p")
    registry = us.Registry(env={})
    registry.register_provider(fake)
    reply = registry.parse("p/m").generate_sync("hi")
    registry.close()
    assert reply.text
    ((model, request),) = fake.calls
    assert (model, request.messages[0].text) == ("m", "hi")
