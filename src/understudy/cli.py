"""The command line: reads the environment, prints, and does nothing else itself.

Exit codes: 0 done, 1 the request failed or something is wrong, 2 wrong usage or input, 3 the
gateway cannot be reached, 130 interrupted. Data goes to stdout, everything else to stderr; an
error is one line and perhaps a hint, even where it is a bug of ours.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from understudy.commands.parser import CommandError, parser
from understudy.commands.screen import Screen

__all__ = ["CommandError", "main", "parser"]

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
STDOUT, STDERR = 1, 2
DEBUG = "UNDERSTUDY_DEBUG"  # a variable; with it a bug shows its stack trace
MOST = 300  # characters of a bug's words


def main(argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run one command; shows no stack trace unless asked to."""
    _stand_in()
    _bear_anything()
    screen = Screen(sys.stdout, sys.stderr, os.environ if env is None else env)
    try:
        arguments = parser().parse_args(argv)
        return _run(arguments, screen)
    except CommandError as error:
        return _complain(screen, str(error), error.hint, error.code)
    except BrokenPipeError:
        # The reader of our output had enough; at exit Python would flush into the broken pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # the edge: whoever ran a command cannot mend our code
        if screen.env.get(DEBUG):
            raise
        return _complain(screen, *_unforeseen(error), FAILED)


def _unforeseen(error: Exception) -> tuple[str, str]:
    """What happened, and what to do. What is optional is asked for where it is used."""
    if isinstance(error, ModuleNotFoundError):
        return f"this Python has no {error.name}", "install all of it: pip install understudy"
    words = " ".join(str(error).split())[:MOST]
    hint = f"this is a bug, please report it; {DEBUG}=1 shows where it happened"
    return f"{type(error).__name__}: {words}", hint


def _stand_in() -> None:
    """Open those standard streams that were closed before we began.

    Else words would break us, and sockets get their numbers, which event loops do not bear.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w")
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w")


def _bear_anything() -> None:
    """A byte that is no text costs itself, not the prompt it stands in or the answer."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _run(arguments: argparse.Namespace, screen: Screen) -> int:
    if arguments.verb is None:
        screen.write(parser().format_help())
        return USAGE
    from understudy.core.errors import UnderstudyError

    try:
        return VERBS[arguments.verb](arguments, screen)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _complain(screen, f"{where}{error.strerror or error}")
    except (UnderstudyError, ValueError) as error:
        return _complain(screen, str(error))


def _complain(screen: Screen, message: str, hint: str = "", code: int = USAGE) -> int:
    screen.note(f"error: {message}")
    if hint:
        screen.note(f"\nhint: {hint}")
    return code


# -- chains -----------------------------------------------------------------------------------


def _ask(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.ask import Question, ask
    from understudy.commands.chains import Source

    prompt = sys.stdin.read() if arguments.prompt == "-" else arguments.prompt
    if not prompt.strip():
        raise CommandError("the prompt is empty", 'write it after the spec: ask SPEC "hello"')
    question = Question(
        arguments.spec,
        prompt,
        arguments.system,
        arguments.timeout,
        not arguments.no_stream,
        arguments.json,
    )
    answered = ask(question, Source(arguments.config, screen.env), screen)
    return OK if answered else FAILED


def _plan(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands import plan
    from understudy.commands.chains import Source
    from understudy.commands.remote import Desk
    from understudy.dialects.guess import request_in

    file, timeout = arguments.request, arguments.timeout
    body = None if file is None else _text(file).encode()
    if arguments.url and arguments.config:
        raise CommandError("--config cannot be given with --url", "a gateway has its own")
    if arguments.url:
        desk = Desk(arguments.url, arguments.admin_key, screen.env)
        found = plan.asked(desk, arguments.spec, body, timeout)
    else:
        model = Source(arguments.config, screen.env).model(arguments.spec)
        found = plan.here(model, None if body is None else request_in(body), timeout)
    plan.show(found, screen, arguments.json)
    return OK if found.head else FAILED


def _models(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands import models
    from understudy.commands.chains import Source

    found = models.rows(arguments.spec, Source(arguments.config, screen.env))
    if arguments.json:
        screen.json(found)
    else:
        models.show(found, screen)
    return OK


# -- a running gateway ------------------------------------------------------------------------


def _status(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.remote import Desk
    from understudy.commands.status import status

    desk = Desk(arguments.url, arguments.admin_key, screen.env)
    if arguments.watch and arguments.fail_if_benched:
        raise CommandError("--fail-if-benched cannot be given with --watch", "look once")
    every = arguments.every if arguments.watch else None
    benched = status(desk, screen, as_json=arguments.json, every=every)
    return FAILED if benched and arguments.fail_if_benched else OK


def _bench(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.orders import bench, sentence, unbench
    from understudy.commands.remote import Desk

    desk = Desk(arguments.url, arguments.admin_key, screen.env)
    if arguments.verb == "bench":
        told = bench(desk, arguments.key, arguments.seconds, arguments.why)
    else:
        told = unbench(desk, arguments.key)
    if arguments.json:
        screen.json(told)
    else:
        screen.data(sentence(told))
    return OK


def _serve(arguments: argparse.Namespace, screen: Screen) -> int:
    from pathlib import Path

    from understudy.commands.serve import serve
    from understudy.gateway.config import InvalidConfig
    from understudy.gateway.setup import Setup

    path = Path(arguments.config) if arguments.config else None
    setup = Setup(path, arguments.host, arguments.port, screen.env, workers=arguments.workers)
    try:
        return serve(setup, screen.note)
    except InvalidConfig as error:
        hint = f"`understudy check {arguments.config}` lists them" if arguments.config else ""
        raise CommandError(str(error), hint) from None


def _check(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.check import ERROR, check, render

    findings = check(arguments.file, screen.env, arguments.probe)
    if arguments.json:
        screen.json([finding.to_dict() for finding in findings])
    else:
        screen.data(render(findings))
    return FAILED if any(finding.level == ERROR for finding in findings) else OK


# -- failures ---------------------------------------------------------------------------------


def _classify(arguments: argparse.Namespace, screen: Screen) -> int:
    from dataclasses import replace

    from understudy.commands import classify

    if arguments.jsonl is not None:
        return _classify_rows(arguments.jsonl, screen)
    text = _text(arguments.file)
    if not text.strip() and arguments.status is None:
        raise CommandError("there is nothing to classify", "paste what failed, or give --status")
    failure = classify.read_paste(text)
    if arguments.status is not None:
        failure = replace(failure, status=arguments.status, body=failure.body or failure.error)
    if arguments.provider is not None:
        failure = replace(failure, provider=arguments.provider)
    told = classify.explain(failure.verdict(now=time.time()))
    if arguments.json:
        screen.json(told)
    else:
        screen.data(classify.rendered(told))
    return OK


def _classify_rows(path: str, screen: Screen) -> int:
    from understudy.commands.classify import judge_rows

    bad = 0
    for told, problem in judge_rows(_text(path).splitlines()):
        if told is None:
            bad += 1
            screen.note(f"error: {problem}")
        else:
            screen.json(told)
    return FAILED if bad else OK


# -- agents -----------------------------------------------------------------------------------


def _agents(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.agents import command

    if arguments.act == "serve":
        key = arguments.key or screen.env.get("UNDERSTUDY_KEY", "")
        where = (arguments.registry, arguments.host, arguments.port)
        command.serve(*where, key=key, echo=screen.note)
        return OK
    told: list[str] = []
    routed = command.route(arguments.file, arguments.registry, echo=told.append)
    *events, answer = told
    for event in [] if arguments.json else events:
        screen.note(event)
    screen.data(answer)
    return OK if routed else FAILED


# -- rehearsals -------------------------------------------------------------------------------


def _simulate(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.simulate import Wanted, simulate

    wanted = Wanted(
        (arguments.file, *arguments.compare),
        tuple(arguments.sweep),
        arguments.seed,
        arguments.html,
        arguments.json,
    )
    code = simulate(wanted, echo=screen.data, say=screen.progress if screen.watched else None)
    screen.progress("\r\x1b[K")
    return code


def _replay(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.replay import Wanted, replay

    wanted = Wanted(tuple(arguments.files), tuple(arguments.settings), arguments.json)
    say = screen.progress if screen.watched else None
    return OK if replay(wanted, echo=screen.data, note=screen.note, say=say) else FAILED


def _fake(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.fake import fake, listing, told

    if arguments.list:
        if arguments.json:
            screen.json(told())
        else:
            screen.data(listing())
        return OK
    if arguments.file is not None and arguments.script is not None:
        raise CommandError("a script is given twice", "give FILE or --script")
    script = arguments.script if arguments.file is None else _text(arguments.file)
    return fake(script, arguments.host, arguments.port, say=screen.note, echo=screen.data)


# -- the rest ---------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands import demo

    if arguments.json:
        screen.json(demo.told())
    else:
        demo.demo(screen.data)
    return OK


def _completion(arguments: argparse.Namespace, screen: Screen) -> int:
    from understudy.commands.completion import script

    screen.write(script(arguments.shell, parser()))
    return OK


def _text(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


VERBS: dict[str, Callable[[argparse.Namespace, Screen], int]] = {
    "ask": _ask,
    "plan": _plan,
    "status": _status,
    "bench": _bench,
    "unbench": _bench,
    "classify": _classify,
    "check": _check,
    "serve": _serve,
    "models": _models,
    "agents": _agents,
    "simulate": _simulate,
    "replay": _replay,
    "fake": _fake,
    "demo": _demo,
    "completion": _completion,
}

if __name__ == "__main__":
    sys.exit(main())
