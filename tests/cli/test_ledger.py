"""The ledger of `understudy status` says who cleared a key."""

from __future__ import annotations

import pytest

from tests.cli.stage import aside, call, whole_gateway


def test_a_clearing_by_hand_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        at = ("--url", address)
        call(capsys, "bench", "house/piano", "--for", "10m", *at)
        call(capsys, "unbench", "house/piano", *at)
        rows = [line.split() for line in call(capsys, "status", *at).out.splitlines()]
    [cleared] = [row[2:] for row in rows if "clear" in row]
    assert cleared == ["clear", "house/piano", "by", "operator"]
