"""npm's `openai` and AI SDK, LangChain and LiteLLM: the same questions, the same answers.

Each program runs once, past a head that is down, and reports what its SDK made of the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.clients.foreign import PIECES, PROGRAMS, WRONG, Foreign, Troupe
from tests.clients.rig import FAILED_OVER, Backstage, fields_of
from understudy import Tool
from understudy.testing import told

CLIENTS = [client for program in PROGRAMS for client in program.clients]
clients = pytest.mark.parametrize("client", CLIENTS, ids=str)
ways = pytest.mark.parametrize("way", ["relayed", "translated"])
WANTED = [["weather", {"city": "Bern"}], ["weather", {"city": "Basel"}]]


@pytest.fixture(scope="module")
def troupe(backstage: Backstage) -> Iterator[Troupe]:
    with ExitStack() as stack:
        yield Troupe(backstage, stack)


@clients
@ways
def test_text_and_usage_come_from_the_tail(troupe: Troupe, client: Foreign, way: str) -> None:
    heard = troupe.heard(client)
    assert heard.told[way]["plain"] == ["".join(PIECES), [7, 5]]
    stories = [told(record.attempts) for record in heard.scenes[way].finished(5)]
    # The wrong key never got as far as an attempt, and the head was asked by the first only.
    assert [story for story in stories if story] == [
        FAILED_OVER,
        *[["head/m=skipped", "tail/m=ok"]] * 4,
    ]


@clients
@ways
def test_a_stream_comes_piece_by_piece_and_accumulates(
    troupe: Troupe, client: Foreign, way: str
) -> None:
    pieces, whole, usage = troupe.heard(client).told[way]["stream"]
    assert pieces == list(PIECES)
    assert (whole, usage) == ("".join(PIECES), [1, 3])


@clients
@ways
@pytest.mark.parametrize("kind", ["tools", "streamed tools"])
def test_parallel_tool_calls_come_whole(
    troupe: Troupe, client: Foreign, way: str, kind: str
) -> None:
    heard = troupe.heard(client)
    assert heard.told[way][kind] == WANTED
    calls = heard.scenes[way].fake.calls
    offered = [t.name for _, asked in calls for t in asked.tools if isinstance(t, Tool)]
    assert offered.count("weather") == 2


@clients
@ways
def test_structured_output_is_parsed(troupe: Troupe, client: Foreign, way: str) -> None:
    heard = troupe.heard(client)
    assert heard.told[way]["structured"] == {"city": "Bern", "people": 134000}
    scene = heard.scenes[way]
    # LiteLLM asks Claude for a schema by way of a tool.
    wanted = scene.fields or fields_of(scene.offered[0][1])
    assert wanted == {"city", "people"}


@clients
def test_a_wrong_key_is_the_clients_own_error(troupe: Troupe, client: Foreign) -> None:
    kind, words = troupe.heard(client).told["wrong key"]
    assert kind == client.errors.unauthorised
    assert "no such key" in words
    assert WRONG not in words


@clients
@pytest.mark.parametrize("end", ["exhausted", "limited"])
def test_a_chain_at_its_end_is_an_error_naming_every_target(
    troupe: Troupe, client: Foreign, end: str
) -> None:
    heard = troupe.heard(client)
    kind, words = heard.told[end]
    assert kind == (client.errors.exhausted if end == "exhausted" else client.errors.limited)
    assert "head/m" in words
    assert "tail/m" in words
    status = {"exhausted": 503, "limited": 429}[end]
    assert [record.status for record in heard.scenes[end].finished()] == [status]


@clients
def test_a_stream_cut_after_content_is_an_error_and_never_a_finish(
    troupe: Troupe, client: Foreign
) -> None:
    heard = troupe.heard(client)
    text, kind, words = heard.told["cut"]
    assert (text, kind) == ("one two ", client.errors.broken)
    assert "closed the connection" in words
    assert heard.scenes["cut"].outcome == "broken"


@pytest.mark.parametrize("client", [c for c in CLIENTS if "langchain" in c.name], ids=str)
def test_langchain_can_tell_messages_apart(troupe: Troupe, client: Foreign) -> None:
    """Over Responses it takes our answer's id for the message's: equal ones would overwrite."""
    told = troupe.heard(client).told
    ids = told["relayed"]["ids"] + told["translated"]["ids"]
    assert len(set(ids)) == len(ids) == 8
