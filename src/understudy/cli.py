"""The command line: reads the environment, prints, and does nothing else itself.

Exit codes: 0 done, 1 the request or some rows failed, 2 wrong usage or input, 130 interrupted.
Data goes to stdout, everything else to stderr; an error is one line and perhaps a hint.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """What the user did wrong, in one line; `hint` says what would be right."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CommandError(message, f"see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """Every verb and flag; imports nothing slow."""
    top = _Parser(prog="understudy", description="Failover for language models and agents.")
    top.add_argument("--version", action="version", version=f"understudy {_version()}")
    top.set_defaults(run=_help)
    verbs = top.add_subparsers(dest="verb", metavar="COMMAND", parser_class=_Parser)
    classify = verbs.add_parser("classify", help="say what kind of failure something is")
    classify.add_argument("file", nargs="?", default="-", help="pasted failure (default: stdin)")
    classify.add_argument("--jsonl", metavar="FILE", help="many rows, one JSON object a line")
    classify.add_argument("--status", type=int, help="HTTP status, if the paste has none")
    classify.add_argument("--provider", help="whose failure it is")
    classify.add_argument("--json", action="store_true", help="print JSON")
    classify.set_defaults(run=_classify)
    plan = verbs.add_parser("plan", help="say what would happen to a request, target by target")
    plan.add_argument("spec", help="a chain, e.g. 'openai/gpt-5.5, anthropic/claude-opus-4-8'")
    plan.add_argument("--timeout", type=float, help="seconds for the whole request")
    plan.add_argument("--json", action="store_true", help="print JSON")
    plan.set_defaults(run=_plan)
    serve = verbs.add_parser("serve", help="run the gateway")
    serve.add_argument("--config", metavar="FILE", help="TOML; without one: environment, or demo")
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 8080)")
    serve.set_defaults(run=_serve)
    demo = verbs.add_parser("demo", help="watch a chain fail over, no keys needed")
    demo.set_defaults(run=_demo)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; never shows a stack trace for what a user can mend."""
    from understudy.core.errors import UnderstudyError

    try:
        arguments = parser().parse_args(argv)
        run: Callable[[argparse.Namespace], int] = arguments.run
        return run(arguments)
    except CommandError as error:
        return _complain(str(error), error.hint)
    except BrokenPipeError:  # the reader of our output had enough
        sys.stderr.close()
        return OK
    except (UnderstudyError, OSError, ValueError) as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _help(arguments: argparse.Namespace) -> int:
    parser().print_help()
    return USAGE


def _complain(message: str, hint: str = "") -> int:
    print(f"error: {message}", file=sys.stderr)
    if hint:
        print(f"\nhint: {hint}", file=sys.stderr)
    return USAGE


def _version() -> str:
    try:
        return version("understudy")
    except PackageNotFoundError:
        return "(not installed)"


def _classify(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from understudy.commands import classify

    if arguments.jsonl is not None:
        return _classify_rows(arguments.jsonl)
    failure = classify.read_paste(_text(arguments.file))
    if arguments.status is not None:
        failure = replace(failure, status=arguments.status, body=failure.body or failure.error)
    if arguments.provider is not None:
        failure = replace(failure, provider=arguments.provider)
    told = classify.explain(failure.verdict(now=time.time()))
    if arguments.json:
        print(json.dumps(told))
        return OK
    delay = told["retry_after_s"]
    print(f"fault     {told['fault']}")
    print(f"evidence  {told['evidence']}")
    print(f"delay     {'none given' if delay is None else f'{delay:g} s'}")
    then = told["then"]
    assert isinstance(then, dict)
    for name, sentence in then.items():
        print(f"{name:<13} {sentence}")
    return OK


def _classify_rows(path: str) -> int:
    from understudy.commands.classify import judge_rows

    bad = 0
    for told, problem in judge_rows(_text(path).splitlines()):
        if told is None:
            bad += 1
            print(f"error: {problem}", file=sys.stderr)
        else:
            print(json.dumps(told))
    return FAILED if bad else OK


def _plan(arguments: argparse.Namespace) -> int:
    from understudy.registry import Registry

    plan = Registry(env=os.environ).parse(arguments.spec).plan(timeout=arguments.timeout)
    print(json.dumps(plan.to_dict()) if arguments.json else plan)
    return OK if plan.head else FAILED


def _demo(arguments: argparse.Namespace) -> int:
    from understudy.commands.demo import demo

    demo(print)
    return OK


def _serve(arguments: argparse.Namespace) -> int:
    from understudy.commands.serve import serve

    return serve(arguments.config, arguments.host, arguments.port, os.environ, _say)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _text(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main())
