"""The scripted provider on a real socket: all surfaces, byte by byte."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.rig import run
from tests.served import BASES, provider
from understudy import ProviderError, Registry, Request
from understudy.commands.fake import greeting, listing
from understudy.messages.response import Response, TextDelta
from understudy.providers.base import Call
from understudy.rehearse.catalogue import ROWS
from understudy.rehearse.phrases import voice
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer


async def raw(server: FakeServer, request: bytes) -> bytes:
    """Everything the server says to these bytes until it closes."""
    host, port = server.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    try:
        return await reader.read()
    except OSError as error:
        return type(error).__name__.encode()
    finally:
        writer.close()


def chat(model: str, *, stream: bool = False) -> bytes:
    body = json.dumps({"model": model, "stream": stream, "messages": []}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("dialect", BASES)
def test_it_answers_on_every_surface_plain_and_streaming(dialect: str) -> None:
    async def scene() -> tuple[str, str]:
        async with FakeServer(parse("m: 'well said' ...")) as server:
            up = provider(dialect, server.address)
            registry = Registry(env={})
            registry.register_provider(up)
            model = registry.parse("up/m")
            plain = (await model.generate("hi")).text
            heard = ""
            async with model.stream("hi") as events:
                async for event in events:
                    heard += event.text if isinstance(event, TextDelta) else ""
                    assert not isinstance(event, Response) or event.text == "well said"
            await up.aclose()
            return plain, heard

    assert run(scene()) == ("well said", "well said")


def test_outcomes_come_in_order_and_then_all_is_well() -> None:
    async def scene() -> list[str]:
        async with FakeServer(parse("m: 503 'once' 429(7); *: 500 ...")) as server:
            up = provider("openai", server.address)
            told = []
            for model in ("m", "m", "m", "m", "other", "other"):
                try:
                    told.append((await up.generate(Call(model, Request.of("hi")))).text)
                except ProviderError as error:
                    told.append(f"{error.status_code} {error.retry_after}")
            await up.aclose()
            assert [played.cue for played in server.played] == [
                "503", "text", "429", "", "500", "500",
            ]  # fmt: skip
            return told

    assert run(scene()) == ["503 None", "once", "429 7.0", "hello from m", "500 None", "500 None"]


def test_a_clause_of_a_target_is_that_of_its_model() -> None:
    async def scene() -> bytes:
        async with FakeServer(parse("p/a/b: closed-before-headers ...; p/c: 503")) as server:
            return await raw(server, chat("a/b")) + await raw(server, chat("p/a/b"))

    assert run(scene()) == b""


def test_bytes_are_what_the_script_says() -> None:
    async def scene() -> dict[str, bytes]:
        async with FakeServer(parse("cut: cut(1); slow: drip(0); late: pause(0)")) as server:
            return {
                "cut": await raw(server, chat("cut", stream=True)),
                "slow": await raw(server, chat("slow")),
                "reset": await raw(server, chat("reset-before-headers")),
                "closed": await raw(server, chat("closed-before-headers")),
                "half": await raw(server, chat("cut-body")),
            }

    said = run(scene())
    good = voice("openai", "slow", "hello from slow").phrases()["answer"]
    assert said["cut"].count(b"data: ") == 1
    assert not said["cut"].endswith(b"0\r\n\r\n")
    assert said["slow"].endswith(good)
    assert said["reset"] == b"ConnectionResetError"
    assert said["closed"] == b""
    assert b"hello from cut-body" in said["half"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(said["half"].partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", b"200"),
        (b"POST /nowhere HTTP/1.1\r\ncontent-length: 0\r\n\r\n", b"404"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 2\r\n\r\n[]", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 1\r\n\r\n{", b"400"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", b"413"),
        (b"hello\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_to_a_model_is_refused(request_: bytes, status: bytes) -> None:
    async def scene() -> bytes:
        async with FakeServer() as server:
            host, port = server.address.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request_)
            said = await reader.readuntil(b"\r\n")
            writer.close()
            return said

    assert run(scene()).split(b" ")[1] == status


def test_a_chunked_request_is_read_too() -> None:
    body = json.dumps({"model": "m", "messages": []}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    request = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    async def scene() -> bytes:
        async with FakeServer(parse("m: cut-body")) as server:
            return await raw(server, request)

    assert run(scene()).startswith(b"HTTP/1.1 200 OK")


def test_the_list_names_every_fault_and_the_greeting_says_where() -> None:
    assert all(row.name in listing() for row in ROWS)
    assert "http://x" in greeting("http://x", ["m"])
    assert "m, n" in greeting("http://x", ["m", "n"])


def test_the_command_prints_its_address_and_a_line_for_each_call() -> None:
    code = (
        "import sys; from understudy.commands.fake import fake\n"
        "say = lambda text: print(text, file=sys.stderr, flush=True)\n"
        "echo = lambda text: print(text, flush=True)\n"
        "fake(\"m: cut-body\", '127.0.0.1', 0, say=say, echo=echo)"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout
        assert process.stderr
        address = process.stderr.readline().split()[-1]

        async def scene() -> bytes:
            server = FakeServer()
            server.address = address
            return await raw(server, chat("m"))

        try:
            assert run(scene()).startswith(b"HTTP/1.1 200")
            played = json.loads(process.stdout.readline())
        finally:
            process.terminate()
    assert played == {"model": "m", "dialect": "openai", "stream": False, "cue": "cut-body"}
