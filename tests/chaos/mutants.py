# ruff: noqa: E501 - a table: rows are read across
"""Breaks every invariant on purpose and shows a test going red: `python -m tests.chaos.mutants`.

Each mutant is a small edit of a copy of `src`, never of the work tree. One that stays green, or
whose place in the code is not found, fails the run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RED, GREEN = 1, 0  # pytest's exit codes; any other says that nothing was shown
SECONDS = 120  # for one mutant's tests
HISTORIES = "tests/chaos/test_histories.py"
OUTAGES = f"{HISTORIES}::test_attempts_stay_near_the_number_of_requests_in_an_outage"
FAULTS = "tests/gateway/test_faults.py"
ENDS = "tests/chaos/test_ends.py"
LEAVING = f"{ENDS}::test_the_upstream_is_closed_when_the_caller_leaves_and_nobody_is_marked"
DRIPPING = f"{ENDS}::test_ten_bytes_a_second_end_with_the_requests_own_time"


@dataclass(frozen=True)
class Mutant:
    """One edit and the tests that must not survive it."""

    law: str
    means: str
    path: str  # below src/understudy
    old: str
    new: str
    tests: str

    def place(self, root: Path) -> Path:
        return root / "understudy" / self.path


# fmt: off
MUTANTS = (
    Mutant("R1", "the first content is sent twice", "gateway/exchange.py",
           "hop.first)", "hop.first * 2)", FAULTS),
    Mutant("R2", "a committed stream goes on to others", "core/walk.py",
           "if self.committed is not None:\n            return \"stop\"", "if False:\n            return \"stop\"", HISTORIES),
    Mutant("R3", "benched targets are asked", "core/health.py",
           "return mark is None or mark.closed_until <= self.clock()", "return True", HISTORIES),
    Mutant("R3", "everybody may probe", "core/health.py",
           "mark.closed_until = now + PROBE_LAPSE", "pass", HISTORIES),
    Mutant("R4", "an answer is told twice", "core/walk.py",
           "self.trip.record(self._line(\"ok\"))", "[self.trip.record(self._line(\"ok\")) for _ in \"12\"]", HISTORIES),
    Mutant("R4", "a failure that ended it is not told", "observe/lines.py",
           "return attempt.then == \"stop\" or not attempt.next", "return attempt.then == \"stop\"", "tests/gateway/test_logs.py"),
    Mutant("R5", "a stream that was cut passes for whole", "dialects/framed.py",
           "raise Truncated(\"the stream ended without its terminator\")", "return None", "tests/rehearse/test_server.py tests/dialects/test_anthropic_streams.py"),
    Mutant("R5", "a cut passes for an end where bytes are relayed", "gateway/flows.py",
           "if not self._scan.complete:", "if False:", FAULTS),
    Mutant("R6", "nothing passes for an answer", "messages/response.py",
           "return \"neither text, tool call nor image came back\"", "return \"\"", "tests/test_chains.py tests/test_streams.py tests/rehearse/test_server.py"),
    Mutant("R7", "nobody notices that the caller left", "gateway/connection.py",
           "            reply.left()", "            pass", LEAVING),
    Mutant("R7", "leaving is held against the target", "core/walk.py",
           "self.trip.release(self.candidate, self.started)\n        self.trip.record(self._line(\"cancelled\"",
           "self.trip.stage.health and self.trip.stage.health.report_failure(self.candidate.key)\n        self.trip.record(self._line(\"cancelled\"", LEAVING),
    Mutant("R8", "a target may take ten times its share", "core/walk.py",
           "return (self.deadline - now) / (1 + others)", "return 10 * (self.deadline - now) / (1 + others)", f"{HISTORIES} {DRIPPING}"),
    Mutant("R8", "attempts begin after the deadline", "core/walk.py",
           "if started >= deadline:", "if False:", HISTORIES),
    Mutant("R9", "no answer is too large", "providers/answer.py",
           "if self._size > self._limit:", "if False:", "tests/transport/test_answers.py tests/gateway/test_faults.py"),
    Mutant("R10", "keys are quoted as they come", "providers/credentials.py",
           "known = text if self._text is None else self._text.sub(REDACTED, text)", "known = text", "tests/gateway/test_secrets.py"),
    Mutant("R11", "repeat offenders are never benched", "core/health.py",
           "if mark.failures < self.cooldown.threshold:", "if True:", OUTAGES),
    Mutant("R12", "a bad request is tried elsewhere", "core/policy.py",
           "Fault.PERMANENT:            Rule(N,    False, STOP,", "Fault.PERMANENT:            Rule(N,    False, GO,  ", HISTORIES),
    Mutant("R12", "a bad request is held against the target", "core/policy.py",
           "STOP,   Mark.NONE,    _NOBODY),\n    Fault.EMPTY", "STOP,   Mark.COUNT,   _TARGET),\n    Fault.EMPTY", HISTORIES),
    Mutant("R13", "only the last failure is named", "core/walk.py",
           "return ChainExhausted(errors, self.story,", "return ChainExhausted(errors[-1:], self.story,", HISTORIES),
)
# fmt: on
LAWS = tuple(f"R{n}" for n in range(1, 14))


def lost(mutants: Iterable[Mutant], source: Path = ROOT / "src") -> list[str]:
    """Mutants whose place in the code is not there, or not one only."""
    found = ((m, m.place(source).read_text(encoding="utf-8").count(m.old)) for m in mutants)
    return [f"{m.law} {m.path}: {n} places for {m.old!r}" for m, n in found if n != 1]


def copied(folder: Path) -> Path:
    """The sources, where they may be broken."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    return source


def tested(source: Path, tests: Iterable[str]) -> tuple[int, str]:
    """Run tests on these sources: pytest's exit code, and the first test that failed."""
    env = {
        **os.environ,  # noqa: TID251 - as whoever runs it has it
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "UNDERSTUDY_SEEDS": "400",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-rf",
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return RED, f"not over after {SECONDS} s"
    first = re.search(r"^FAILED (tests/.+?)(?: - |$)", done.stdout, re.M)
    # An error of the set-up is not what was to be shown.
    red = done.returncode == RED and first is None
    return -1 if red else done.returncode, first[1] if first else done.stdout.strip()[-200:]


def caught(mutant: Mutant) -> str:
    """Break one thing; the test that went red, or "" if none did."""
    with tempfile.TemporaryDirectory() as folder:
        source = copied(Path(folder))
        place = mutant.place(source)
        place.write_text(place.read_text(encoding="utf-8").replace(mutant.old, mutant.new))
        code, first = tested(source, mutant.tests.split())
    return first if code == RED else ""


def main() -> int:
    say = sys.stdout.write
    if missing := lost(MUTANTS):
        say("\n".join(missing) + "\n")
        return 1
    tests = sorted({test for mutant in MUTANTS for test in mutant.tests.split()})
    with tempfile.TemporaryDirectory() as folder:
        code, first = tested(copied(Path(folder)), tests)
    if code != GREEN:
        say(f"not green before anything was broken: {first}\n")
        return 1
    alive = 0
    for mutant in MUTANTS:
        red = caught(mutant)
        alive += not red
        say(f"{mutant.law:<4} {mutant.means:<48} {mutant.path:<24} {red or 'STAYED GREEN'}\n")
        sys.stdout.flush()
    say(f"{len(MUTANTS) - alive} of {len(MUTANTS)} were caught\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
