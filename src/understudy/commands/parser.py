"""Every verb and flag of the command line. Imports nothing slow; does nothing itself.

A flag that takes a file has the metavar FILE: shell completion offers files there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import NoReturn

URL = "http://127.0.0.1:8080"
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
LONGEST = 36_500  # days; a time beyond is a slip of the hand
SHELLS = ("bash", "zsh", "fish")
SPEC = "a chain, e.g. 'openai/gpt-5.5, anthropic/claude-opus-4-8'"

Verb = Callable[[argparse.ArgumentParser], None]


class CommandError(Exception):
    """What the user did wrong, in one line; `hint` says what would be right."""

    code = 2  # what the process exits with

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Unreachable(CommandError):
    """The gateway is not there, or what is there is no gateway."""

    code = 3


class Parser(argparse.ArgumentParser):
    """Complains by exception, so that one place prints."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(message, f"see `{self.prog} --help`")


class _Version(argparse.Action):
    """Looks the version up when it is asked for: reading metadata takes 30 ms."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("understudy")
        except PackageNotFoundError:
            found = "(not installed)"
        sys.stdout.write(f"understudy {found}\n")  # `exit` would write to stderr
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The whole command line; `verb` and, for agents, `act` say what was asked for."""
    top = Parser(
        prog="understudy",
        description="Failover for language models and agents.",
        epilog="exit codes: 0 done, 1 the request failed or something is wrong, 2 wrong usage or "
        "input, 3 the gateway cannot be reached, 130 interrupted",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    verbs = top.add_subparsers(dest="verb", metavar="COMMAND", parser_class=Parser)
    for name, (sentence, fill) in VERBS.items():
        verb = verbs.add_parser(name, help=sentence, description=sentence)
        fill(verb)
    return top


def seconds(text: str) -> float:
    """`90`, `90s`, `10m`, `1.5h`, `1d` as seconds."""
    match = DURATION.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 10m, 2h or 1d")
    found = float(match[1]) * UNITS[match[2]]
    if found > LONGEST * UNITS["d"]:
        raise argparse.ArgumentTypeError(f"{text!r} is too long; give at most {LONGEST}d")
    return found


def workers(text: str) -> int:
    """A number of processes."""
    if not (text.isascii() and text.isdigit() and len(text) < 5 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of workers; give 1 or more")
    return int(text)


def port(text: str) -> int:
    """A port to listen on; 0 lets the system choose."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _ask(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("spec", help=SPEC)
    verb.add_argument("prompt", help="what to ask; - reads it from stdin")
    verb.add_argument("--system", metavar="TEXT", help="instructions for the model")
    verb.add_argument("--timeout", type=seconds, metavar="TIME", help="for the whole request")
    verb.add_argument("--no-stream", action="store_true", help="wait for the whole answer")
    _config(verb)
    _json(verb)


def _plan(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("spec", help=SPEC)
    verb.add_argument("--request", metavar="FILE", help="a request as JSON; who cannot take it?")
    verb.add_argument("--timeout", type=seconds, metavar="TIME", help="for the whole request")
    _config(verb)
    _gateway(verb, "ask this gateway, which knows who is benched", default=None)
    _json(verb)


def _status(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--watch", action="store_true", help="again and again, until interrupted")
    verb.add_argument("--every", type=seconds, default=2.0, metavar="TIME", help="default: 2s")
    verb.add_argument("--fail-if-benched", action="store_true",
                      help="code 1 if anybody is benched")  # fmt: skip
    _gateway(verb)
    _json(verb)


def _bench(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("key", help="provider/model, or provider#credential")
    verb.add_argument("--for", type=seconds, required=True, dest="seconds", metavar="TIME",
                      help="how long: 90s, 10m, 2h, 1d")  # fmt: skip
    verb.add_argument("--why", default="", metavar="TEXT", help="for whoever wonders later")
    _gateway(verb)
    _json(verb)


def _unbench(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("key", help="provider/model, or provider#credential")
    _gateway(verb)
    _json(verb)


def _classify(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", nargs="?", default="-", metavar="FILE",
                      help="pasted failure (default: stdin)")  # fmt: skip
    verb.add_argument("--jsonl", metavar="FILE", help="many rows, one JSON object a line")
    verb.add_argument("--status", type=int, help="HTTP status, if the paste has none")
    verb.add_argument("--provider", help="whose failure it is")
    _json(verb)


def _check(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", metavar="FILE", help="the configuration")
    verb.add_argument("--probe", action="store_true",
                      help="open and close a connection to every provider")  # fmt: skip
    _json(verb)


def _serve(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--config", metavar="FILE", help="TOML; without one: environment, or demo")
    verb.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    verb.add_argument("--port", type=port, help="port to listen on (default: 8080)")
    verb.add_argument("--workers", type=workers, metavar="N",
                      help="processes (default: 1, or what the file says)")  # fmt: skip


def _models(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("spec", nargs="?", default="", help="a chain (default: every vendor)")
    _config(verb)
    _json(verb)


def _demo(verb: argparse.ArgumentParser) -> None:
    _json(verb)


def _simulate(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", metavar="FILE", help="a scenario")
    verb.add_argument("--compare", action="append", default=[], metavar="FILE",
                      help="another scenario beside it; repeatable")  # fmt: skip
    verb.add_argument("--sweep", action="append", default=[], metavar="KEY=A,B",
                      help="values to try, e.g. health.threshold=1,2; repeatable")  # fmt: skip
    verb.add_argument("--seed", type=int, metavar="N", help="another history than the scenario's")
    verb.add_argument("--html", metavar="FILE", help="write a page with charts as well")
    _json(verb)


def _replay(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("files", nargs="+", metavar="FILE",
                      help="journals; those put aside beside them are found")  # fmt: skip
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                      help="another setting, e.g. health.threshold=3; repeatable")  # fmt: skip
    _json(verb)


def _fake(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("file", nargs="?", metavar="FILE", help="a script; - reads it from stdin")
    verb.add_argument("--script", metavar="TEXT", help="a script, e.g. 'p/a: 503*2 429(7) ...'")
    verb.add_argument("--host", default="127.0.0.1", help="address to listen on")
    verb.add_argument("--port", type=port, default=8099, help="port to listen on (default: 8099)")
    verb.add_argument("--list", action="store_true", help="print the catalogue of faults")
    _json(verb)


def _agents(verb: argparse.ArgumentParser) -> None:
    acts = verb.add_subparsers(dest="act", metavar="ACT", required=True, parser_class=Parser)
    for name, (sentence, fill) in AGENT_ACTS.items():
        act = acts.add_parser(name, help=sentence, description=sentence)
        fill(act)


def _agents_serve(act: argparse.ArgumentParser) -> None:
    act.add_argument("registry", help="module:name of an AgentRegistry")
    act.add_argument("--host", default="127.0.0.1", help="address to listen on")
    act.add_argument("--port", type=port, default=8090, help="port to listen on (default: 8090)")
    act.add_argument("--key", metavar="KEY", help="better: set UNDERSTUDY_KEY")


def _agents_route(act: argparse.ArgumentParser) -> None:
    act.add_argument("file", metavar="FILE", help="an envelope as JSON")
    act.add_argument("--registry", required=True, help="module:name of an AgentRegistry")
    _json(act)


def _completion(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("shell", choices=SHELLS, help="whose script to print")


def _json(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--json", action="store_true", help="print JSON")


def _config(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--config", metavar="FILE", help="providers and aliases of a gateway's file")


def _gateway(
    verb: argparse.ArgumentParser, means: str = "the gateway", default: str | None = URL
) -> None:
    shown = f"{means} (default: $UNDERSTUDY_URL or {URL})" if default else means
    verb.add_argument("--url", help=shown)
    verb.add_argument("--admin-key", metavar="KEY", help="better: set UNDERSTUDY_ADMIN")


VERBS: dict[str, tuple[str, Verb]] = {
    "ask": ("ask a chain, and tell how the answer came about", _ask),
    "plan": ("say what would happen to a request, target by target", _plan),
    "status": ("who is benched at a gateway, and why", _status),
    "bench": ("take a target out at a gateway for some time", _bench),
    "unbench": ("let a target back in at a gateway", _unbench),
    "classify": ("say what kind of failure something is", _classify),
    "check": ("find mistakes in a configuration file", _check),
    "serve": ("run the gateway", _serve),
    "models": ("what is known of models: windows, prices, what they take", _models),
    "agents": ("fall back over agents: serve a registry, route an envelope", _agents),
    "simulate": ("rehearse an outage on a simulated clock, and compare settings", _simulate),
    "replay": ("what would have happened under other settings, from a journal", _replay),
    "fake": ("run a provider that misbehaves by script", _fake),
    "demo": ("watch a chain fail over, no keys needed", _demo),
    "completion": ("print a completion script for a shell", _completion),
}
AGENT_ACTS: dict[str, tuple[str, Verb]] = {
    "serve": ("let others route over HTTP", _agents_serve),
    "route": ("route one envelope, and tell who was tried", _agents_route),
}
