"""Every row of the classifier's tables proves itself, and so does every spelling in it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from understudy.core.classify import classify
from understudy.core.faults import Fault, Verdict
from understudy.core.rules import Rule, Sample
from understudy.core.rules_codes import STRONG
from understudy.core.rules_local import CALLER_PIPE, LEFT, SLOW, STALL, TRANSPORT, TYPES
from understudy.core.rules_says import SPOKEN
from understudy.core.rules_special import BROKEN_OFF, EMPTY, HEALING, PAIRS
from understudy.core.rules_weak import BARE, STATUS, WORDS

CODED = tuple(rule for group in STRONG for rule in group)
LOCAL = (*LEFT, *STALL, *SLOW, *TRANSPORT, *CALLER_PIPE)
SENT = (*CODED, *SPOKEN, *PAIRS, *STATUS, *WORDS, *BARE, HEALING, EMPTY, BROKEN_OFF)
ALL = (*SENT, *LOCAL, *TYPES)


def judged(sample: Sample) -> Verdict:
    return classify(
        sample.error or None,
        status=sample.status,
        headers=sample.headers,
        body=sample.body,
        provider=sample.provider,
        stream=sample.stream,
    )


def exception_named(name: str) -> Exception:
    made: Exception = type(name, (Exception,), {})("boom")
    return made


@pytest.mark.parametrize("rule", [*SENT, *LOCAL], ids=lambda rule: rule.name)
def test_a_row_decides_its_own_sample(rule: Rule) -> None:
    verdict = judged(rule.sample)
    assert (verdict.fault, verdict.evidence.partition(":")[0]) == (rule.fault, rule.name)


@pytest.mark.parametrize("rule", TYPES, ids=lambda rule: rule.name)
def test_a_row_knows_exceptions_by_the_names_of_their_types(rule: Rule) -> None:
    for name in rule.words():
        verdict = classify(exception_named(name))
        assert (verdict.fault, verdict.evidence) == (rule.fault, f"{rule.name}: {name}")


def body_with(code: str) -> str:
    """The shape in which a vendor sends this code."""
    place, _, number = code.partition(":")
    shapes = {
        "error": {"error": {"code": number}},
        "errors": {"success": False, "errors": [{"code": number}]},
        "baseresp": {"base_resp": {"status_code": int(number or 0) if number.isdigit() else 0}},
        "flat": {"object": "error", "code": number},
        "top": {"code": number, "message": "x"},
        "said": {"error": {"message": f"no such luck ({number})"}},
        "finish": {"choices": [{"finish_reason": "error"}]},
    }
    shape = shapes[place] if place in shapes and number else {"error": {"code": code}}
    return json.dumps(shape)


@pytest.mark.parametrize("rule", [*CODED, *WORDS], ids=lambda rule: rule.name)
def test_every_code_of_a_row_means_its_fault(rule: Rule) -> None:
    meant = {
        code: classify(status=rule.sample.status, body=body_with(code)).fault
        for code in rule.words()
    }
    assert meant == dict.fromkeys(rule.words(), rule.fault)


def sentence(phrase: str) -> str:
    return phrase.replace("…", "of some kind,").replace("*", "x-1").strip("^$ ")


@pytest.mark.parametrize("rule", [*SPOKEN, *BARE], ids=lambda rule: rule.name)
def test_every_phrase_of_a_row_means_its_fault(rule: Rule) -> None:
    meant = {}
    for phrase in rule.phrases():
        body = json.dumps({"error": {"message": sentence(phrase)}})
        meant[phrase] = classify(status=rule.sample.status or 200, body=body).fault
    assert meant == dict.fromkeys(rule.phrases(), rule.fault)


@pytest.mark.parametrize("rule", [*LEFT, *STALL, *TRANSPORT], ids=lambda rule: rule.name)
def test_every_exception_text_of_a_row_means_its_fault(rule: Rule) -> None:
    meant = {phrase: classify(sentence(phrase)).fault for phrase in rule.phrases()}
    assert meant == dict.fromkeys(rule.phrases(), rule.fault)


def test_every_fault_a_provider_can_cause_has_a_row() -> None:
    # `unsupported` is ours alone: fitting a request to a target raises it. `unknown` is no row.
    assert {rule.fault for rule in ALL} == set(Fault) - {Fault.UNKNOWN, Fault.UNSUPPORTED}


def test_rows_have_names_of_their_own_without_colons() -> None:
    doubles = [name for name, n in Counter(rule.name for rule in ALL).items() if n > 1]
    assert (doubles, [r.name for r in ALL if ":" in r.name]) == ([], [])


def test_phrases_are_lower_case_and_begin_with_a_word() -> None:
    phrases = [phrase for rule in ALL for phrase in rule.phrases() if phrase != "^$"]
    assert [p for p in phrases if p != p.lower() or p[0] in "…*"] == []
