"""A server on loopback that gives one prepared answer, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any


class Served:
    """Where the server listens, what it answers, and the last request it got."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.body = b"{}"
        self.kind = "application/json"
        self.status = 200
        self.path = ""
        self.asked = b""

    def answers(self, body: Any, kind: str = "application/json", status: int = 200) -> None:
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.kind, self.status = kind, status


@contextmanager
def served() -> Iterator[Served]:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            place.path = self.path
            place.asked = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(place.status)
            self.send_header("content-type", place.kind)
            self.send_header("content-length", str(len(place.body)))
            self.end_headers()
            self.wfile.write(place.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: tests are quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    place = Served(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
