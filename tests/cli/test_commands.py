"""The other verbs, and what holds for all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.stage import CONFIG, call, file, terminal
from understudy.cli import VERBS, main, parser
from understudy.commands import parser as verbs
from understudy.commands.models import show
from understudy.commands.parser import Parser, seconds


def test_every_verb_that_can_be_parsed_can_be_run() -> None:
    assert set(VERBS) == set(verbs.VERBS)


# check


def test_a_sound_file_is_fine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = call(capsys, "check", file(tmp_path, CONFIG))
    assert said.code == 0
    assert "error" not in said.out


def test_an_error_in_a_file_is_code_one_and_names_its_path(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = file(tmp_path, '[gateway]\nprot = 8080\n[aliases]\na = "nobody/x"\n')
    said = call(capsys, "check", path)
    assert said.code == 1
    assert "gateway.prot: unknown key; did you mean 'port'?" in said.out
    told = json.loads(call(capsys, "check", path, "--json").out)
    assert {"error"} == {finding["level"] for finding in told}


def test_warnings_alone_are_code_zero(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = CONFIG.replace("near/small, near/large", "near/small")
    said = call(capsys, "check", file(tmp_path, text))
    assert said.code == 0
    assert "warning" in said.out


# models


def test_what_a_chain_takes_and_costs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = call(capsys, "models", "chat", "--config", file(tmp_path, CONFIG), "--json")
    small, large = json.loads(said.out)
    assert (small["target"], small["context_window"], small["max_images"]) == (
        "near/small", 4096, 0,
    )  # fmt: skip
    assert (large["context_window"], large["input_price"]) == (None, None)


def test_unknown_is_said_and_never_guessed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = call(capsys, "models", "chat", "--config", file(tmp_path, CONFIG))
    assert said.out.splitlines()[1].split() == [
        "near/small", "4,096", "unknown", "unknown", "none", "yes", "yes",
    ]  # fmt: skip
    assert "no limit known" in said.out.splitlines()[2]


def test_prices_of_a_known_model(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("genai_prices")
    (told,) = json.loads(call(capsys, "models", "openai/gpt-4o", "--json").out)
    assert told["context_window"] == 128_000
    assert 0 < told["input_price"] < told["output_price"]


def test_without_a_spec_every_vendor_is_listed_and_no_key_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env = {"GROQ_API_KEY": "gsk-very-secret"}
    said = call(capsys, "models", env=env)
    rows = {line.split()[0]: line for line in said.out.splitlines()}
    assert rows["groq"].split()[2] == "set"
    assert "not set: ANTHROPIC_API_KEY" in rows["anthropic"]
    assert "very-secret" not in said.out + call(capsys, "models", "--json", env=env).out


def test_models_on_a_terminal_are_a_table() -> None:
    screen, out, _ = terminal(NO_COLOR="1")
    show([], screen)
    assert "window" in out.getvalue()


# all verbs


def test_the_demo_as_json_tells_the_same_story(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(call(capsys, "demo", "--json").out)
    assert [scene["model"] for scene in told["scenes"]] == [
        "lead/opera", "understudy/aria", "house/piano", "lead/opera",
    ]  # fmt: skip
    assert told["plan"]["head"] == "lead/opera"


@pytest.mark.parametrize("workers", ["0", "-1", "two", "1.5", "99999"])
def test_a_number_of_workers_is_a_number_of_workers(
    capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    said = call(capsys, "serve", f"--workers={workers}")
    assert said.code == 2
    assert f"{workers!r} is no number of workers; give 1 or more" in said.err


def test_serving_a_bad_file_points_to_check(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = file(tmp_path, "[gateway]\nprot = 1\n")
    said = call(capsys, "serve", "--config", path)
    assert said.code == 2
    assert f"hint: `understudy check {path}` lists them" in said.err


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("2d", 172_800), (" 5s ", 5)],
)
def test_times_are_written_as_people_write_them(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "0", "-5", "5 m", "5w", "inf", "nan", "1e9", "m"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Exception, match="is no time"):
        seconds(text)


def test_every_verb_helps(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS:
        with pytest.raises(SystemExit) as left:
            main([verb, "--help"])
        assert left.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: understudy {verb}")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("understudy ")


def test_a_reader_that_had_enough_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "understudy.cli", "demo"],
        stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


SLOW = ("asyncio", "msgspec", "rich", "httptools", "understudy.registry", "importlib.metadata")


def test_help_loads_nothing_slow() -> None:
    code = (
        "import sys; from understudy.cli import parser; parser().format_help();"
        f"print([name for name in {SLOW!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_parser_is_where_it_always_was() -> None:
    assert parser is verbs.parser


# agents, rehearsals

AGENTS = """
from understudy.agents import AgentRegistry, AgentResponse

registry = AgentRegistry()


@registry.agent("a", capabilities=["summarize"])
def a(envelope):
    raise RuntimeError("out of order")


@registry.agent("b", capabilities=["summarize"])
def b(envelope):
    return AgentResponse.success({"text": "short"})
"""


def routed(tmp_path: Path, intent: str, *flags: str) -> subprocess.CompletedProcess[str]:
    from understudy.agents import IntentEnvelope
    from understudy.agents.codec import write

    (tmp_path / "ours_for_the_cli.py").write_text(AGENTS)
    envelope = IntentEnvelope.new(intent, {"text": "long"}, strategy="fallback")
    (tmp_path / "envelope.json").write_bytes(write(envelope))
    argv = ["agents", "route", "envelope.json", "--registry", "ours_for_the_cli:registry", *flags]
    source = str(Path(__file__).parents[2] / "src")
    return subprocess.run(
        [sys.executable, "-m", "understudy.cli", *argv],
        cwd=tmp_path, env={"PYTHONPATH": source},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_route_is_told_beside_its_answer(tmp_path: Path) -> None:
    done = routed(tmp_path, "summarize")
    assert done.returncode == 0
    assert json.loads(done.stdout)["decision_path"] == ["a", "b"]
    assert done.stderr.splitlines()[-1] == "path: a -> b"


def test_a_route_that_fails_is_code_one_and_json_alone_if_asked(tmp_path: Path) -> None:
    done = routed(tmp_path, "translate", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "CAPABILITY_NOT_FOUND"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["agents"], "the following arguments are required: ACT"),
        (["agents", "route", "/no/such", "--registry", "m:n"], "cannot read '/no/such'"),
        (["agents", "serve", "nowhere"], "a registry is written module:name, not 'nowhere'"),
        (["fake", "/no/such"], "/no/such: No such file"),
        (["fake", "file", "--script", "p/a: 503"], "a script is given twice"),
        (["fake", "--script", "p/a: wobble"], "unknown outcome 'wobble'"),
    ],
)
def test_mistakes_with_agents_and_rehearsals_are_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    told = call(capsys, *argv)
    assert (told.code, told.out) == (2, "")
    assert said in told.err.splitlines()[0]


def test_the_catalogue_of_faults_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "fake", "--list")
    assert said.code == 0
    assert "reset-mid-stream" in said.out


OUTAGE = """
[scenario]
seconds = 20
[traffic]
rate = 5
[targets."a/x"]
outages = [{ start = 5, seconds = 5 }]
[targets."b/y"]
"""


def test_a_simulation_compares_settings_and_is_the_same_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv = ("simulate", file(tmp_path, OUTAGE), "--sweep", "health.threshold=1,2", "--json")
    said = call(capsys, *argv)
    assert (said.code, said.err) == (0, "")
    assert len(json.loads(said.out)) == 2
    assert call(capsys, *argv).out == said.out


def test_a_scenario_that_cannot_be_played_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = call(capsys, "simulate", file(tmp_path, "[trafic]\n"))
    assert (said.code, said.out) == (2, "")
    assert "did you mean 'traffic'?" in said.err.splitlines()[0]


def test_progress_is_shown_only_where_somebody_looks(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    screen, _, err = terminal()
    screen.progress("\r[##..]")
    assert err.getvalue() == "\r[##..]"
    assert call(capsys, "simulate", file(tmp_path, OUTAGE)).err == ""


def test_the_catalogue_of_faults_is_told_to_machines_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = json.loads(call(capsys, "fake", "--list", "--json").out)
    listed = call(capsys, "fake", "--list").out.splitlines()
    assert [row["name"] for row in told] == [line.split()[0] for line in listed]
    assert {row["fault"] for row in told} >= {None, "transient", "rate_limit"}
    assert all(set(row["forms"]) <= {"plain", "stream"} for row in told)


def test_whatever_prints_data_can_print_it_as_json() -> None:
    mute = {"serve", "completion", "agents"}  # it logs JSON lines; a script; its acts have it
    flags = {name: _flags(name) for name in set(verbs.VERBS) - mute}
    assert [name for name, known in flags.items() if "--json" not in known] == []


def _flags(name: str) -> set[str]:
    verb = Parser()
    verbs.VERBS[name][1](verb)
    return set(verb._option_string_actions)
