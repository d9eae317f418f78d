"""The model's name in a client's body: replaced, and nothing else touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.gateway.ask import PEEK, peek, with_model

NAMES = st.text(min_size=1, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["model", '"model"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    fields=st.dictionaries(st.text() | st.just("model"), VALUES, max_size=4),
    old=NAMES,
    new=NAMES,
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]),
    ascii_only=st.booleans(),
)
def test_whatever_else_is_asked_for_only_the_model_changes(
    fields: dict[str, object], old: str, new: str, separators: tuple[str, str], ascii_only: bool
) -> None:
    asked = {**fields, "model": old}
    body = json.dumps(asked, separators=separators, ensure_ascii=ascii_only).encode()
    changed = with_model(body, peek(body, PEEK).model, new)
    assert json.loads(changed) == {**asked, "model": new}


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"chat","messages":[ {"role": "user"} ],  "n":1.0}',
        b'{ "messages": [{"content": "say \\"model\\": \\"chat\\""}],\n "model": "chat" }',
        b'{ "moderation": { "model": "omni" }, "n" : 1.0,\n "model": "chat" }',
    ],
)
def test_a_body_as_libraries_write_it_keeps_every_other_byte(body: bytes) -> None:
    changed = with_model(body, "chat", "gpt-5.5")
    before, _, after = body.rpartition(b'"chat"')
    assert changed == before + b'"gpt-5.5"' + after


def test_of_two_names_in_one_body_the_last_one_counts_as_in_any_reader_of_json() -> None:
    body = b'{"model": "first", "model": "last"}'
    assert json.loads(with_model(body, peek(body, PEEK).model, "new")) == {"model": "new"}
