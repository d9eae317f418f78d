"""The page of the HTTP API and its OpenAPI document are the gateway's routes and fields."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.gateway.desk import ask
from understudy.core.faults import Fault
from understudy.core.health import HealthTracker
from understudy.gateway.errands import ERRANDS
from understudy.gateway.listing import PLACES
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup
from understudy.gateway.surfaces import GEMINI, PATHS, VERBS
from understudy.observe.metrics import Metrics
from understudy.observe.record import Opening, Record
from understudy.testing import ManualClock

REFERENCE = Path(__file__).parents[2] / "docs/reference"
PAGE = (REFERENCE / "http-api.md").read_text(encoding="utf-8")
DOCUMENT = json.loads((REFERENCE / "openapi.json").read_text(encoding="utf-8"))
ASSET = re.compile(r"/understudy/[0-9a-f]+/[\w.-]+")  # files of the dashboard, by their content


def routes() -> set[tuple[str, str]]:
    """Everything the gateway answers, as `serve` starts it."""

    async def opened() -> Runtime:
        return Runtime(Setup(env={}), lambda line: None)

    table = asyncio.run(opened()).gateway.routes
    found = {(method, path) for method, path in table if not ASSET.fullmatch(path)}
    found |= {("POST", path) for path in (*PATHS, *ERRANDS)}
    found |= {("POST", f"{start}{{model}}:{verb}") for start in GEMINI for verb in VERBS}
    found |= {("GET", place) for place in PLACES}
    return found | {("GET", f"{place}/{{model}}") for place in PLACES}


def test_the_document_describes_exactly_the_routes() -> None:
    told = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
    }
    assert told == routes()


def test_the_page_names_every_route_with_its_method() -> None:
    told = {
        (method, path)
        for methods, path in re.findall(r"^\| ([A-Z, ]+) \| `(/[^`]*)` \|", PAGE, re.M)
        for method in methods.split(", ")
    }
    below = {(method, path) for method, path in routes() if path.endswith("/{model}")}
    again = {("POST", f"{start}{{model}}:{verb}") for start in GEMINI[1:] for verb in VERBS}
    assert told == routes() - below - again
    assert "`/v1/models/{model}`" in PAGE
    assert "also below `/v1` and `/v1alpha`" in PAGE


def test_the_gateway_serves_the_document_of_the_pages_without_a_key() -> None:
    async def served() -> bytes:
        runtime = Runtime(Setup(env={}), lambda line: None)
        runtime.gateway.house.admin_key = "boss-key"
        port = await runtime.server.listen("127.0.0.1", 0)
        try:
            answer = await ask(f"http://127.0.0.1:{port}", "GET", "/understudy/openapi.json")
        finally:
            await runtime.server.close()
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        return answer.body

    assert json.loads(asyncio.run(served())) == DOCUMENT


def test_every_reference_within_the_document_leads_somewhere() -> None:
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(DOCUMENT)):
        place = DOCUMENT
        for step in reference.split("/"):
            place = place[step]


def test_operations_have_names_of_their_own() -> None:
    names = [o["operationId"] for ops in DOCUMENT["paths"].values() for o in ops.values()]
    assert len(names) == len(set(names))


def test_the_faults_of_the_document_are_the_faults() -> None:
    assert DOCUMENT["components"]["schemas"]["Fault"]["enum"] == [str(fault) for fault in Fault]


def test_the_metrics_of_the_page_are_those_that_are_told() -> None:
    health = HealthTracker(clock=ManualClock())
    text = Metrics(lambda: 0, lambda: health).text().decode()
    told = re.findall(r"^\| `(understudy_\w+)` \| (\w+) \|", PAGE, re.M)
    assert told == re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)


def test_answers_of_the_operators_interface_have_the_fields_of_the_document() -> None:
    from understudy.gateway.admin import Board

    async def opened() -> Runtime:
        return Runtime(Setup(env={}), lambda line: None)

    runtime = asyncio.run(opened())
    schemas = DOCUMENT["components"]["schemas"]
    assert isinstance(runtime.board, Board)
    runtime.gateway.house.registry.health.bench("lead/opera", 60, why="test")
    opening = Opening("r1", "openai", "demo", False, "", 0.0)
    runtime.past.finished(Record(opening, 200, "ok", 0.1))
    health = told(runtime, "health", "")
    assert set(health) == set(schemas["Health"]["properties"])
    assert set(health["keys"]["lead/opera"]) == set(schemas["State"]["properties"])
    assert set(health["ledger"][0]) == set(schemas["LedgerEntry"]["properties"])
    plan = told(runtime, "plan", "model=demo")
    assert set(plan) == set(schemas["Plan"]["properties"])
    assert set(plan["targets"][0]) == set(schemas["PlanLine"]["properties"])
    (request,) = told(runtime, "attempts", "")["requests"]
    assert set(request) == set(schemas["Request"]["properties"])


def told(runtime: Runtime, name: str, query: str):  # type: ignore[no-untyped-def]
    """An answer of the interface, over a socket."""
    import http.client

    async def asked() -> bytes:
        port = await runtime.server.listen("127.0.0.1", 0)

        def ask() -> bytes:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", f"/understudy/api/{name}?{query}")
            body = connection.getresponse().read()
            connection.close()
            return body

        try:
            return await asyncio.to_thread(ask)
        finally:
            await runtime.server.close()

    return json.loads(asyncio.run(asked()))


@pytest.mark.parametrize("status", [400, 401, 404, 405, 408, 413, 429, 431, 500, 502, 503, 504])
def test_every_status_of_the_gateway_is_explained(status: int) -> None:
    statuses = re.findall(r"^\| ([\d, ]+) \|", PAGE, re.M)
    assert str(status) in ", ".join(statuses)
