"""What a failure says, unwrapped: machine codes innermost first, messages, embedded statuses.

Knows where vendors, proxies and SDKs hide the error inside an error; decides nothing. Only known
places are read, because bodies echo the caller's own text. No input raises, none takes long: JSON
above a cap is not parsed, its head and tail are scanned for the fields that matter.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from understudy.core.answers import (
    FAILED_ENDS,
    FAILED_TYPES,
    NO_ANSWER,
    Answer,
    failed,
    read_answer,
)

PARSE_CAP = 65_536  # bytes; a longer body is scanned at both ends, not parsed
SCAN_HEAD, SCAN_TAIL = 8_192, 2_048
MESSAGE_HEAD, MESSAGE_TAIL = 2_000, 500
TEXT_CAP = 8_192
MAX_DEPTH, MAX_NODES = 10, 96


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Names of fields, without case and separators.
CODE_KEYS = _set(
    """
    code type status reason errorcode errortype errcode statuscode httpstatus httpcode
    httpstatuscode statusname errorname exceptiontype
    """
)
# Text here is a message, anything else is looked into.
PLACES = _set(
    """
    error errors message msg detail details description reasondesc args errormessage errormsg
    errordescription errordetails
    statusmsg title faultstring fault cause innererror inner exception body raw baseresp metadata
    upstreamerror originalerror lasterror failure responsemetadata htmlmessage
    """
)
# Never messages themselves.
CONTAINERS = _set("response data violations choices header result xgroq")
DELAY_KEYS = _set(
    """
    retrydelay quotaresetdelay quotaresettimestamp retryafter retryafterms retryafterseconds
    retryaftersec retryin retryinseconds resetsinseconds resetinseconds resetseconds resetsin
    resetsat resetat resettime estimatedtime waitseconds waittime
    """
)
_ALNUM = {ord(c): None for c in map(chr, range(128)) if not c.isalnum()}
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\n": " "})

# `'key': 'value'` and `"key": 429` in JSON that is cut, too long, or a Python repr.
_PAIR = re.compile(
    r"""["'](code|type|status|reason|message|msg|detail|error|error_code|error_type|error_msg"""
    r"""|error_message|errorCode|__type|status_code|http_status|retryDelay|quotaResetDelay|retry_after|resets_in_seconds"""
    r"""|estimated_time)\\?["']\s{0,4}:\s{0,4}(?:\\?"((?:[^"\\]|\\[^"]){0,2000})"""
    r"""|'((?:[^'\\]|\\.){0,2000})|(-?\d{1,15}(?:\.\d{1,9})?))"""
)
_CLASS_NAME = re.compile(
    r"An error occurred \((\w{1,80})\)|code = (\w{1,40}) desc|StatusCode\.([A-Z_]{1,40})"
    r"|\b(\w{2,80}Exception|[A-Z]\w{1,80}(?:Error|Exhausted))\b"
    r"|exception-type\W{1,8}(\w{1,60}Exception)"
    r"|^([A-Z]\w{2,60})\([\"']|\bCode: ([A-Za-z]\w{2,60})"  # a repr; Azure's clients
)
_SNAKE = re.compile(r"\b[A-Za-z]{1,30}(?:_[A-Za-z]{1,30}){1,6}\b")
_VENDOR_NUMBER = re.compile(r"\((\d{4})\)\s{0,2}$|^\[(\d{4})\]")
_CLASS_HINTS = (
    *("Error", "Exception", "Exhausted", "occurred ("),
    *("code = ", "StatusCode", "Code: ", "('", '("'),
)
_ECHO = re.compile(r"input_value=.{0,2000}?(?=, input_type=|$)", re.S)  # pydantic: the request
_TITLE = re.compile(r"<(title|h1)[^>]{0,200}>([^<]{1,300})", re.I)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything a body says about why it is not an answer."""

    codes: tuple[tuple[int, str], ...] = ()  # (depth, squashed word), innermost first
    numbers: tuple[int, ...] = ()  # HTTP statuses in fields, outermost first
    text: str = "\n"  # all messages, lower case, one a line, begins and ends with a newline
    messages: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()  # machine words put together of others: `no_balance`
    asides: tuple[str, ...] = ()  # what a line says behind the JSON that is folded into it
    first_hand: tuple[str, ...] = ()  # messages, without those a router quotes and has judged
    delays: tuple[tuple[str, object], ...] = ()  # (squashed key, value), outermost first
    headers: tuple[tuple[str, object], ...] = ()  # an upstream's headers quoted in the body
    answer: Answer = NO_ANSWER  # what the body holds when seen as an answer
    errant: bool = False  # the body says that it is an error
    blank: bool = False  # there is no body, or nothing in it


@lru_cache(1024)
def plain(word: str) -> str:
    """Letters and digits only, lower case: one spelling for `statusCode` and `status_code`."""
    return word.translate(_ALNUM).lower()


@lru_cache(1024)
def squash(word: str) -> str:
    """One spelling for `RateLimitError`, `rate_limit_error` and `rate-limit`."""
    return plain(word).removesuffix("exception").removesuffix("error")


def read_body(body: object, *, refused: bool = False) -> Facts:
    """The facts in a body: bytes, text or parsed JSON. A refused one is not read as an answer."""
    found = _Found(refused=refused)
    if isinstance(body, bytes | bytearray):
        cut = bytes(body[:SCAN_HEAD]) + b"\n" + bytes(body[-SCAN_TAIL:])
        body = (cut if len(body) > PARSE_CAP else body).decode("utf-8", "replace")
    if isinstance(body, str):
        cut_text = f"{body[:SCAN_HEAD]}\n{body[-SCAN_TAIL:]}"
        body = (cut_text if len(body) > PARSE_CAP else body).strip("\ufeff\0 \t\r\n")
        found.body(body)
    elif isinstance(body, dict | list):
        found.payload(body)
    return found.facts(blank=not body or body == "null")


def parse(text: str) -> object:
    """JSON, or None when it is none or nested too deep."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


@dataclass(slots=True)
class _Found:
    """Facts while they are being collected; one per body, never shared."""

    codes: list[tuple[int, str]] = field(default_factory=list)
    spelled: list[str] = field(default_factory=list)
    numbers: list[tuple[int, int]] = field(default_factory=list)
    messages: list[tuple[int, str, bool]] = field(default_factory=list)
    asides: list[str] = field(default_factory=list)
    delays: list[tuple[str, object]] = field(default_factory=list)
    headers: list[tuple[str, object]] = field(default_factory=list)
    answer: Answer = NO_ANSWER
    errant: bool = False
    refused: bool = False
    quoted: bool = False  # inside what a router says its upstream said
    nodes: int = 0

    def facts(self, *, blank: bool) -> Facts:
        inner = sorted(self.messages, key=_depth, reverse=True)
        texts = tuple(_cap(text) for _, text, _ in inner)
        lines = "\n".join(text.translate(_QUOTES) for text in texts)[:TEXT_CAP].lower()
        return Facts(
            codes=tuple(sorted(self.codes, key=_depth, reverse=True)),
            numbers=tuple(n for _, n in sorted(self.numbers, key=_depth)),
            text=f"\n{lines}\n",
            messages=texts,
            spelled=tuple(self.spelled),
            asides=tuple(self.asides),
            first_hand=tuple(text for _, text, quoted in inner if not quoted),
            delays=tuple(self.delays),
            headers=tuple(self.headers),
            answer=self.answer,
            errant=self.errant,
            blank=blank,
        )

    def body(self, text: str) -> None:
        """A body as text: JSON, events, a page, lines of JSON, or plain words."""
        if text[:1] in ("{", "[", '"'):
            value = parse(text)
            if value is not None:
                return self.payload(value)
            self.lines(text)
            if self.codes or self.messages or self.answer.seen:
                return None
            self.message(text, 0, loose=True)  # `[Errno 101] Network is unreachable`
        elif text[:1] == "<":
            titles = _TITLE.findall(text, 0, SCAN_HEAD)
            for _, title in titles[:2] or [("", text[:MESSAGE_TAIL])]:
                self.message(str(title), 0)
        elif "exception-type" in text[:SCAN_HEAD]:
            self.message(text, 0, loose=True)  # AWS frames of an event stream
        elif text.startswith((":", "data:", "event:")) or "\ndata:" in text:
            self.events(text)
        elif text:
            self.message(_cap(text), 0, loose=True)

    def payload(self, value: object) -> None:
        """Parsed JSON: an error, an answer, or both."""
        if not self.refused:
            self.errant = self.errant or failed(value)
            self.answer = self.answer.and_then(read_answer(value))
        self.dig(value, 0, "")

    def lines(self, text: str) -> None:
        """JSON lines, as Ollama streams them; what does not parse is read as torn JSON."""
        for line in _ends([x for x in text.splitlines() if x[:1] == "{"]) if "\n" in text else ():
            value = parse(line)
            if value is not None:
                self.event(value, "")
        if not self.codes and not self.messages and not self.answer.seen:
            self.torn(text, 0)

    def events(self, text: str) -> None:
        """A server-sent-event body. Comments and pings are nothing."""
        name = ""
        lines = [line for line in text.splitlines() if line.startswith(("data:", "event:"))]
        for line in _ends(lines):
            if line.startswith("event:"):
                name = line[6:].strip()
            else:
                self.data(line[5:].strip(), name)
                name = ""
        self.answer = self.answer.and_then(Answer(seen=True))

    def data(self, data: str, name: str) -> None:
        """What one event carries: JSON, a word, or the half of it that came."""
        value = parse(data) if data[:1] in ("{", "[") else data
        if value is not None:
            self.event(value, name)
        elif name in FAILED_TYPES or '"error"' in data[:SCAN_TAIL]:
            self.errant = True
            self.torn(data, 0)

    def event(self, value: object, name: str) -> None:
        if value == "[DONE]":
            self.answer = self.answer.and_then(Answer(ended=True))
        elif isinstance(value, str):
            self.errant = self.errant or bool(value)
            self.message(value, 0, loose=True)  # no event of ours is plain text
        else:
            self.answer = self.answer.and_then(read_answer(value))
            if name in FAILED_TYPES or failed(value):
                self.errant = True
                self.dig(value, 0, "")

    def dig(self, node: object, depth: int, place: str) -> None:
        """Walk the known places below `node`."""
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            return
        if isinstance(node, str):
            self.message(node, depth)
        elif isinstance(node, list):
            for item in islice(node, 16):
                self.dig(item, depth, place)
        elif isinstance(node, dict):
            if "object" in node and place == "":
                place = "flat"
            for key, value in islice(node.items(), 64):
                self.entry(plain(key[:60]) if isinstance(key, str) else "", value, depth, place)

    def entry(self, key: str, value: object, depth: int, place: str) -> None:
        """One field of an error object, by its name."""
        if key in DELAY_KEYS:
            self.delays.append((key, value))
        elif key in CODE_KEYS:
            self.code(value, depth, place)
        elif key in PLACES:
            outside, self.quoted = self.quoted, self.quoted or key == "metadata"
            self.dig(value, depth + (key != "details"), key)
            self.quoted = outside
        elif key == "headers" and isinstance(value, dict):
            self.headers.extend((str(k), v) for k, v in islice(value.items(), 64))
        else:
            self.odd(key, value, depth, place)

    def odd(self, key: str, value: object, depth: int, place: str) -> None:
        """Fields that mean something in one vendor's shape only."""
        if key in CONTAINERS and not isinstance(value, str):
            self.dig(value, depth + 1, place)
        elif key == "data" and isinstance(value, str) and value[:1] == "{":
            self.dig(value, depth + 1, place)  # OpenRouter's `raw: {data: "..."}`
        elif key in ("finishreason", "nativefinishreason") and value in FAILED_ENDS:
            self.codes.append((depth, "finish:error"))
        elif key in ("quotavalue", "quotalimitvalue") and str(value) == "0":
            self.codes.append((depth, "quotavalue0"))  # Google: the plan has none of this
        elif key == "name" and isinstance(value, str) and value.endswith(("Error", "Exception")):
            self.codes.append((depth, squash(value)))
        elif key.endswith("exception") and isinstance(value, dict):
            self.codes.append((depth, squash(key)))  # an AWS stream frame names itself by its key
            self.dig(value, depth + 1, key)

    def code(self, value: object, depth: int, place: str) -> None:
        """A machine word, an HTTP status, or a vendor's own number."""
        if isinstance(value, str) and value.isdecimal():
            self.number(int(value[:9]), depth, place)
        elif isinstance(value, int | float):
            self.number(int(value) if -1e9 < value < 1e9 else 0, depth, place)
        elif isinstance(value, str):
            word = value.rpartition("#")[2].partition(":http")[0]  # AWS: prefix#Word:http://...
            self.word(word[:80], depth)
            if " " in value:
                self.message(value, depth)  # xAI writes sentences here
        else:
            self.dig(value, depth + 1, place)

    def word(self, word: str, depth: int) -> None:
        """`Throttling.RateQuota` is more than either half; but a half is more than nothing."""
        first, *others = word.split(".") if " " not in word else [word]
        if others or "_" in word or not (word.islower() or word.isupper()):
            self.spelled.append(word)
        for part in (word, others[-1], first) if others else (word,):
            self.codes.append((depth, squash(part)))

    def number(self, value: int, depth: int, place: str) -> None:
        if 400 <= value <= 599:
            self.numbers += [] if self.quoted else [(depth, value)]
        elif value:
            self.codes.append((depth, f"{place or 'top'}:{value}"))

    def message(self, text: str, depth: int, *, loose: bool = False) -> None:
        """A sentence, and whatever is folded into it: JSON, a repr, class names, numbers."""
        text = _cap(text.strip())
        text = _ECHO.sub("", text) if "input_value=" in text else text
        if not text:
            return
        start = text.find("{")
        if start >= 0 and self.folded(text, start, depth + 1):
            text = text[:start].rstrip(" [")
        if text:
            self.messages.append((depth, text, self.quoted))
            self.names(text, depth, loose=loose)

    def folded(self, text: str, start: int, depth: int) -> bool:
        """Read what is folded into a message from `start` on; False if it is nothing of ours."""
        before = len(self.messages), len(self.codes), len(self.numbers)
        inner, end = _decode_at(text, start)
        if inner is None:
            self.torn(text[start:], depth)
        else:
            self.asides.append(text[end:].partition("\n")[0])
            self.dig(inner, depth, "")
        return before != (len(self.messages), len(self.codes), len(self.numbers))

    def names(self, text: str, depth: int, *, loose: bool) -> None:
        """Machine words inside a sentence."""
        if any(hint in text for hint in _CLASS_HINTS):
            for match in islice(_CLASS_NAME.finditer(text, 0, SCAN_TAIL), 8):
                self.codes.append((depth, squash(match[match.lastindex or 0])))
        if loose or " " not in text:
            for word in islice(_SNAKE.finditer(text, 0, SCAN_TAIL), 16):
                self.codes.append((depth, squash(word[0])))
        vendor = _VENDOR_NUMBER.search(text) if text[-1] == ")" or text[0] == "[" else None
        if vendor:
            self.codes.append((depth, f"said:{vendor[1] or vendor[2]}"))

    def torn(self, text: str, depth: int) -> None:
        """JSON that cannot be parsed: the fields that matter, wherever they stand."""
        text = text.rstrip()
        shown = text if len(text) < SCAN_HEAD else text[:SCAN_HEAD] + "\n" + text[-SCAN_TAIL:]
        frame = "exception-type" in shown  # AWS; the status beside it is filled in
        if frame:
            self.names(shown, depth, loose=False)
        for match in islice(_PAIR.finditer(shown), 32):
            key, value = plain(match[1]), match[2] or match[3] or match[4] or ""
            if frame and key == "statuscode":
                continue
            if key in PLACES:
                self.messages.append((depth, value, self.quoted))
            else:
                self.entry(key, value, depth, "")


def _depth(item: tuple[int, object] | tuple[int, str, bool]) -> int:
    return item[0]


def _cap(text: str) -> str:
    if len(text) <= MESSAGE_HEAD + MESSAGE_TAIL:
        return text
    return f"{text[:MESSAGE_HEAD]} {text[-MESSAGE_TAIL:]}"


def _ends(lines: list[str]) -> list[str]:
    """The first and the last lines: an error stands at the beginning or at the end."""
    return lines if len(lines) < 60 else lines[:30] + lines[-30:]


def _decode_at(text: str, start: int) -> tuple[object, int]:
    """The JSON that begins there, and where it ends."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
