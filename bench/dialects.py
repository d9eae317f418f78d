"""How fast streams are read into neutral events: small SSE events a second, on one core."""

from __future__ import annotations

import time

from understudy.dialects.base import Dialect
from understudy.dialects.table import dialect_named

EVENTS = 20_000
READ = 16 * 1024  # bytes handed over at a time, as a socket would
TARGET = 150_000

CHAT = (
    b'data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1760000000,'
    b'"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,'
    b'"finish_reason":null}]}\n\n'
)
MESSAGES = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":" token"}}\n\n'
)
RESPONSES = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
    b'"item_id":"msg_1","output_index":0,"content_index":0,"delta":" token"}\n\n'
)
GEMINI = b'data: {"candidates":[{"content":{"parts":[{"text":" token"}],"role":"model"}}]}\n\n'
OLLAMA = b'{"model":"m","message":{"role":"assistant","content":" token"},"done":false}\n'
WIRES = {
    "openai": CHAT,
    "anthropic": MESSAGES,
    "responses": RESPONSES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}


def rate(dialect: Dialect, event: bytes) -> float:
    """Events a second of CPU time, the best of five."""
    stream = event * EVENTS
    best = 0.0
    for _ in range(5):
        reader = dialect.reader()
        began = time.process_time()
        count = sum(len(reader.feed(stream[at : at + READ])) for at in range(0, len(stream), READ))
        assert count == EVENTS
        best = max(best, count / (time.process_time() - began))
    return best


def main() -> None:
    print(f"{'dialect':<12}{'events/s':>12}   target {TARGET:,}")
    for name, event in WIRES.items():
        speed = rate(dialect_named(name), event)
        print(f"{name:<12}{speed:>12,.0f}   {'ok' if speed >= TARGET else 'below'}")


if __name__ == "__main__":
    main()
