"""Every configuration key: where it stands, what it takes, what it means.

Errors are made from this table, and the reference is compared with it. Reads no file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from understudy.dialects.table import DIALECTS
from understudy.gateway.kinds import (
    COUNT,
    FLAG,
    RETRIES,
    TEXT,
    WAIT,
    Kind,
    number,
    one_of,
    whole,
)
from understudy.observe.journal_file import LEAST


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _secrets(value: object) -> bool:
    """Keys travel in headers: printable ASCII without blanks."""
    return _texts(value) and all(_secret(item) for item in value)  # type: ignore[attr-defined]


def _secret(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable() and " " not in value


def _server(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(("redis://", "rediss://", "unix://")):
        return False
    try:
        return urlsplit(value).port != 0
    except ValueError:  # brackets that do not close, a port that is none
        return False


def _table_of_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


TEXTS = Kind("a list of texts", _texts)
SECRET = Kind("a key of printable ASCII without blanks", lambda v: v != "" and _secret(v))
SECRETS = Kind(
    "a list of keys of printable ASCII without blanks",
    lambda v: _secrets(v) and "" not in v,  # type: ignore[operator]
)
SECONDS = number(0.001, "seconds above 0")
BYTES = whole(1024, "bytes, 1024 or more")
PORT = Kind("a port, 0 to 65535", lambda v: whole(0, "").fits(v) and int(str(v)) <= 65535)
HEADERS = Kind("a table of texts", _table_of_texts)
MODELS = Kind("a table of tables", lambda v: isinstance(v, dict))
URL = Kind(
    "a URL starting with http:// or https://",
    lambda v: isinstance(v, str) and v.startswith(("http://", "https://")),
)
SERVER = Kind("a URL like redis://host:6379, rediss://host or unix:///path", _server)
NAME = Kind(
    "letters, digits, dots, dashes and underscores",
    lambda v: isinstance(v, str) and re.fullmatch(r"[\w.-]+", v, re.ASCII) is not None,
)


@dataclass(frozen=True, slots=True)
class Key:
    """One row."""

    name: str
    kind: Kind
    means: str
    default: object = None


NAMED = ("availability", "fail_fast")  # policies that a file or a client may name

# fmt: off
GATEWAY = (
    Key("host", TEXT, "address to listen on; other than loopback only with keys", "127.0.0.1"),
    Key("port", PORT, "port to listen on; 0 lets the system choose", 8080),
    Key("keys", SECRETS, "client keys; without any, only loopback may be listened on", []),
    Key("admin_key", SECRET, "for /understudy/api, sent as Bearer; without one, loopback only"),
    Key("policy", one_of(*NAMED), "which table decides", "availability"),
    Key("timeout", SECONDS, "a whole request: all attempts, streaming included", 600),
    Key("allow_specs", FLAG, "may a client send a whole spec as the model, or only aliases", True),
    Key("max_body", BYTES, "largest request body", 32 * 1024 * 1024),
    Key("max_connections", COUNT, "open client connections; fewer if files are short", 10_000),
    Key("read_timeout", SECONDS, "a request must have arrived by then", 30),
    Key("drain_timeout", WAIT, "what running requests get when the gateway stops", 30),
    Key("access_log", FLAG, "one line for every request, not only for failovers", True),
    Key("keepalive", WAIT, "streams: a comment to a client that waits so long for first content; from then on the status is 200; 0 sends none, and Gemini and Ollama have no room for one", 0),
    Key("drain_delay", WAIT, "go on serving for so long after the signal to stop, while /readyz says 503", 0),
    Key("max_concurrent", COUNT, "requests at once for one client key"),
    Key("rate", number(0.001, "requests a second, above 0"), "requests a second for one client key"),
    Key("token_rate", number(0.001, "tokens a second, above 0"), "tokens a second for one client key, in and out, as answers tell them"),
    Key("workers", COUNT, "processes that serve this address; above 1 with a supervisor over them", 1),
    Key("tracing", FLAG, "OpenTelemetry spans; needs its SDK and an exporter, set by OTEL_* variables", False),
)
PROVIDER = (
    Key("dialect", one_of(*DIALECTS), "what it speaks; without one what its vendor speaks, else openai"),
    Key("vendor", TEXT, "a row of the catalogue, if the provider's own name is none"),
    Key("base_url", URL, "where it is"),
    Key("api_key", TEXT, "its key"),
    Key("api_keys", TEXTS, "several keys, in order of preference"),
    Key("auth", one_of("bearer", "x-api-key", "x-goog-api-key", "api-key", "none"), "how the key is sent"),
    Key("headers", HEADERS, "sent with every request"),
    Key("connect_timeout", SECONDS, "lookup, connection and TLS", 5),
    Key("first_byte_timeout", WAIT, "streams: connect, headers and the wait for first content", 15),
    Key("idle_timeout", WAIT, "streams: silence after first content", 60),
    Key("response_timeout", WAIT, "plain requests: the whole answer", 120),
    Key("max_reply", BYTES, "largest answer, unpacked", 64 * 1024 * 1024),
    Key("models", MODELS, "what single models can take: context_window, max_images, tools, …"),
)
POLICY = (
    Key("transient_retries", RETRIES, "immediate retries on the same target", 1),
    Key("advance_on_permanent", FLAG, "advance where auth, permanent, context_length would stop", False),
    Key("max_delay", SECONDS, "the longest provider's delay that is honoured", 300),
    Key("degrade_seconds", SECONDS, "how long a refused credential sits out", 300),
    Key("session_seconds", SECONDS, "how long a credential without credits sits out", 1800),
    Key("max_wait", WAIT, "wait so long for a benched target if all are benched", 2),
    Key("budget_ratio", number(0, "a ratio, 0 or more"), "retries allowed per request, over all requests", 0.2),
    Key("budget_rate", number(0, "retries a second, 0 or more"), "retries allowed per second in any case", 10),
)
HEALTH = (
    Key("threshold", COUNT, "consecutive failed attempts that bench a target", 2),
    Key("base", SECONDS, "seconds of the first bench", 5),
    Key("factor", number(1.001, "a number above 1"), "growth of each further bench", 2),
    Key("cap", SECONDS, "seconds of the longest bench", 300),
    Key("probe", FLAG, "after a bench admit one attempt at a time", True),
)
JOURNAL = (
    Key("path", TEXT, "the file it is written to; without one there is none"),
    Key("max_bytes", whole(LEAST, f"bytes, {LEAST} or more"), "a file of this size is put aside", 32 * 1024 * 1024),
    Key("keep", RETRIES, "files put aside that are kept; the oldest goes first", 7),
)
SHARE = (
    Key("url", SERVER, "Redis or Valkey through which hosts share health; without one they do not"),
    Key("name", NAME, "of this deployment; others on the same server are not heard", "default"),
    Key("cluster", FLAG, "the server is a cluster", False),
    Key("limits", FLAG, "rate and token_rate hold for all hosts together, not for each process", False),
)
MODEL = (
    Key("context_window", COUNT, "tokens"),
    Key("max_output", COUNT, "tokens"),
    Key("max_images", RETRIES, "images in one request; 0 means none"),
    Key("max_image_bytes", COUNT, "bytes of one image"),
    Key("max_image_pixels", COUNT, "the longer side of an image"),
    Key("image_types", TEXTS, "MIME types it takes"),
    Key("tools", FLAG, "takes tools"),
    Key("structured", FLAG, "obeys a JSON schema"),
)
# fmt: on

SECTIONS = {
    "gateway": GATEWAY,
    "providers.NAME": PROVIDER,
    "providers.NAME.models.MODEL": MODEL,
    "policy": POLICY,
    "policy.ALIAS": POLICY,
    "health": HEALTH,
    "journal": JOURNAL,
    "share": SHARE,
}
