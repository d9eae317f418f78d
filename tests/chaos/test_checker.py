"""The checker is on trial: lines of a good run, and for each law lines that break it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.chaos.checker import judged, main, table, wrong
from tests.chaos.company import PROVIDER_KEYS
from tests.chaos.laws import LAWS, one_outcome, the_bench_is_kept
from tests.chaos.lines import Line, Run, joined
from tests.chaos.spoken import Said, pack, said, unpack

WALL = 1_000_000.0  # the wall's time when the clock showed 0
MIB = 1 << 20
CHAINS = {"chat": ["a/m", "d/m"], "outage": ["a/503", "d/well"], "bad": ["a/400", "d/well"]}


def client(name: str, **more: object) -> Line:
    """A client that stayed and got all of `a/m`'s answer."""
    return {
        "who": "client", "id": name, "model": "chat", "way": "stays", "deadline": 4.0,
        "status": 200, "first": 10.2, "whole": True, "text": f"<a/m {name}>", "terminated": True,
        "error": "", "body": "", "leaks": [], "sent": 10.0, "ended": 10.3, "left": None,
        "trouble": "", "lag": 0.0, **more,
    }  # fmt: skip


def target(name: str, **more: object) -> Line:
    return {
        "who": "target", "id": name, "target": "a/m", "fault": "well", "began": 10.1,
        "ended": 10.2, "left": None, "stale": False, "lag": 0.0, "whole": True,
        "text": f"<a/m {name}>", **more,
    }  # fmt: skip


def request(name: str, **more: object) -> Line:
    return {
        "event": "request", "request_id": name, "surface": "openai", "status": 200,
        "outcome": "ok", "latency_ms": 290.0, "at": WALL + 10.0, **more,
    }  # fmt: skip


def failure(name: str, **more: object) -> Line:
    return {
        "event": "failover", "request_id": name, "provider": "a", "model": "m",
        "error_class": "transient", "http_status": 503, "at": WALL + 12.0, **more,
    }  # fmt: skip


@dataclass
class Story:
    """Lines of a run, to be changed one way or the other."""

    parties: list[Line] = field(default_factory=list)
    log: list[Line] = field(default_factory=list)
    stage: list[Line] = field(default_factory=list)
    metrics: str = ""
    papers: dict[str, bytes] = field(default_factory=lambda: {"page-0.txt": b"all is well"})

    def run(self) -> Run:
        return joined(self.parties, self.log, self.stage, self.metrics, self.papers)

    def of(self, name: str, who: str = "client") -> Line:
        return next(x for x in self.parties if x["id"] == name and x["who"] == who)

    def told(self, name: str) -> Line:
        return next(x for x in self.log if x["request_id"] == name and x["event"] == "request")


def good() -> Story:
    """A short run in which every law has something to judge and nothing to say."""
    spent = "no target could answer: a/m: transient (503): no; d/m: skipped, benched"
    refused: Line = {"text": "", "terminated": False, "error": "no"}
    story = Story()
    story.parties = [
        client("one"),
        target("one"),
        client("left", **refused, whole=False, left=10.5, ended=10.5, first=None, way="leaves"),
        target("left", began=10.1, ended=10.6, left=10.55, whole=False),
        client("dead", model="outage", text="<d>"),
        target("dead", target="a/503", fault="503", text="", whole=False),
        target("dead", target="d/well", text="<d>"),
        client("bad", **refused, model="bad", status=400),
        target("bad", target="a/400", fault="400", text="", whole=False),
        client("spent", **refused, status=503, body=spent, sent=11.9, ended=12.1, first=12.1),
        target("spent", fault="503", text="", whole=False, began=11.95, ended=12.0),
        client("probe", sent=14.2, first=14.6, ended=14.6),
        target("probe", began=14.3, ended=14.5),
    ]
    story.log = [
        request("one"),
        request("left", status=499, outcome="left"),
        request("dead"),
        failure("bad", event="failover_abort", error_class="permanent", http_status=400),
        request("bad", status=400, outcome="failed"),
        failure("spent", benched_s=2.0),
        request("spent", status=503, outcome="failed"),
        request("probe"),
        {"event": "reloaded", "at": WALL + 9.0},
    ]
    story.stage = [
        {"event": "begun", "at": 0.0, "wall": WALL, "workers": 1, "chains": CHAINS, "cap": MIB},
        {"event": "start", "rss": 50 * MIB, "sockets": 3},
        {"event": "taken", "at": 9.0},
        {"event": "sample", "rss": 80 * MIB, "sockets": 30},
        {"event": "warm", "rss": 60 * MIB, "sockets": 3},
        {"event": "after", "rss": 62 * MIB, "sockets": 4},
        {"event": "ended", "code": 0},
    ]
    counts = {("200", "ok"): 3, ("499", "left"): 1, ("400", "failed"): 1, ("503", "failed"): 1}
    story.metrics = "understudy_in_flight 0\n" + "".join(
        f'understudy_requests_total{{surface="openai",status="{s}",outcome="{o}"}} {n}\n'
        for (s, o), n in counts.items()
    )
    return story


def test_a_credential_may_return_to_all_at_once() -> None:
    story = good()
    two_probes(story)
    next(line for line in story.log if "benched_s" in line)["error_class"] = "auth"
    assert not [found for found in the_bench_is_kept(story.run()) if found]


def test_a_good_run_breaks_no_law_and_leaves_none_idle() -> None:
    rulings = judged(good().run())
    assert [ruling.name for ruling in rulings] == [name for name, _ in LAWS]
    assert wrong(rulings) == [], "\n".join(table(rulings))


# -- one way to break each law


def two_voices(story: Story) -> None:
    story.of("one")["text"] = "<a/m one><d/m one>"


def asked_again_later(story: Story) -> None:
    story.parties.append(target("one", target="d/m", began=10.25, ended=10.3))


def asked_on_the_bench(story: Story) -> None:
    story.of("probe", "target")["began"] = 13.0


def two_probes(story: Story) -> None:
    story.of("probe", "target").update(whole=False, ended=15.5)
    story.parties += [client("other", sent=14.3), target("other", began=14.4, ended=14.9)]
    story.log.append(request("other"))


def no_end_in_the_log(story: Story) -> None:
    story.log.remove(story.told("one"))


def two_ends_in_the_log(story: Story) -> None:
    story.log.append(request("one"))


def another_status(story: Story) -> None:
    story.told("spent")["status"] = 502


def a_break_called_ok(story: Story) -> None:
    story.of("one").update(terminated=False, error="it broke off")


def torn(story: Story) -> None:
    story.of("one").update(whole=False, trouble="torn: EOFError")


def miscounted(story: Story) -> None:
    story.metrics = story.metrics.replace('outcome="ok"} 3', 'outcome="ok"} 2')


def an_invented_end(story: Story) -> None:
    story.of("one", "target")["whole"] = False


def an_end_too_soon(story: Story) -> None:
    story.of("one")["text"] = "<a/m"


def an_empty_success(story: Story) -> None:
    story.of("one")["text"] = ""


def kept_on_the_line(story: Story) -> None:
    story.of("left", "target").update(ended=13.0, left=None)


def blamed_for_leaving(story: Story) -> None:
    story.log.append(failure("left", error_class="client_disconnect"))


def late_at_the_client(story: Story) -> None:
    story.of("one")["ended"] = 15.1


def late_in_the_log(story: Story) -> None:
    story.told("left")["latency_ms"] = 5100.0


def swollen(story: Story) -> None:
    story.stage[3]["rss"] = 119 * MIB


def a_key_on_a_page(story: Story) -> None:
    story.papers["page-3.txt"] = b"Authorization: Bearer " + PROVIDER_KEYS["a"].encode()


def a_key_in_an_answer(story: Story) -> None:
    story.of("bad")["leaks"] = ["a"]


def a_storm(story: Story) -> None:
    story.parties += [
        target("dead", target="a/503", fault="503", text="", whole=False, began=10.1 + n / 100)
        for n in range(12)
    ]


def a_bad_request_went_on(story: Story) -> None:
    story.parties.append(target("bad", target="d/well", began=10.15))


def a_bad_request_in_other_words(story: Story) -> None:
    story.of("bad")["status"] = story.told("bad")["status"] = 502


def benched_for_a_bad_request(story: Story) -> None:
    story.log[3]["benched_s"] = 0.5


def somebody_unnamed(story: Story) -> None:
    line = story.of("spent")
    line["body"] = line["body"].replace("d/m: ", "")


def sockets_left(story: Story) -> None:
    story.stage[5]["sockets"] = 9


def memory_grown(story: Story) -> None:
    story.stage[5]["rss"] = 90 * MIB


def still_flying(story: Story) -> None:
    story.metrics = story.metrics.replace("in_flight 0", "in_flight 2")


def a_reload_unheard(story: Story) -> None:
    story.stage.append({"event": "taken", "at": 30.0})


def a_bad_file_taken(story: Story) -> None:
    story.stage.append({"event": "refused", "at": 30.0})


def a_fault_of_its_own(story: Story) -> None:
    story.log.append({"event": "internal_error", "kind": "KeyError"})


def a_worker_lost(story: Story) -> None:
    story.log.append({"event": "worker_ended", "code": -1})


def a_bad_end(story: Story) -> None:
    story.stage[-1]["code"] = -9


BREAKS: dict[str, tuple[Callable[[Story], None], ...]] = {
    "one_source": (two_voices,),
    "no_second_thoughts": (asked_again_later,),
    "the_bench_is_kept": (asked_on_the_bench, two_probes),
    "one_outcome": (
        no_end_in_the_log, two_ends_in_the_log, another_status, a_break_called_ok, torn
    ),
    "counts_agree": (miscounted,),
    "no_invented_end": (an_invented_end, an_end_too_soon),
    "no_empty_success": (an_empty_success,),
    "who_leaves_is_let_go": (kept_on_the_line, blamed_for_leaving),
    "all_ends_in_time": (late_at_the_client, late_in_the_log),
    "memory_is_bounded": (swollen,),
    "keys_stay_home": (a_key_on_a_page, a_key_in_an_answer),
    "outages_are_calm": (a_storm,),
    "callers_faults_end_it": (
        a_bad_request_went_on, a_bad_request_in_other_words, benched_for_a_bad_request
    ),
    "everybody_is_named": (somebody_unnamed,),
    "nothing_is_left_over": (sockets_left, memory_grown, still_flying),
    "reloads_are_heeded": (
        a_reload_unheard, a_bad_file_taken, a_fault_of_its_own, a_worker_lost, a_bad_end
    ),
}  # fmt: skip


def test_every_law_is_broken_by_somebody() -> None:
    assert list(BREAKS) == [law.__name__ for _, law in LAWS]


def breaks() -> Iterator[object]:
    for law, ways in BREAKS.items():
        for way in ways:
            yield pytest.param(law, way, id=f"{law}-{way.__name__}")


@pytest.mark.parametrize(("law", "breaking"), list(breaks()))
def test_a_broken_law_is_caught(law: str, breaking: Callable[[Story], None]) -> None:
    story = good()
    breaking(story)
    caught = {ruling.law.__name__ for ruling in judged(story.run()) if ruling.breaches}
    assert law in caught


def test_a_law_with_nothing_to_judge_fails_the_run() -> None:
    story = good()
    story.parties = [line for line in story.parties if line["id"] != "dead"]
    assert [ruling.name for ruling in wrong(judged(story.run())) if ruling.idle] == ["R11"]


def test_requests_of_a_killed_worker_are_spared_and_others_are_not() -> None:
    story = good()
    no_end_in_the_log(story)
    story.stage.append({"event": "killed", "at": 10.2})
    assert [finding for finding in one_outcome(story.run()) if finding] == []
    story.stage[-1]["at"] = 30.0
    assert [finding for finding in one_outcome(story.run()) if finding] != []


def test_the_command_reads_a_folder_and_says_by_its_code_whether_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = good()
    papers = {"clients": "client", "targets": "target"}
    for name, who in papers.items():
        rows = [json.dumps(line) for line in story.parties if line["who"] == who]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    (tmp_path / "gateway.jsonl").write_text("\n".join(map(json.dumps, story.log)))
    (tmp_path / "stage.jsonl").write_text("\n".join(map(json.dumps, story.stage)))
    (tmp_path / "page-0.txt").write_text(story.metrics)
    assert main(str(tmp_path)) == 0
    (tmp_path / "page-1.txt").write_text(PROVIDER_KEYS["b"])
    assert main(str(tmp_path)) == 1
    assert "page-1.txt holds the key of b" in capsys.readouterr().out


# -- its eyes


@pytest.mark.parametrize(
    ("dialect", "stream", "body", "heard"),
    [
        ("openai", False, b'{"choices":[{"message":{"content":"hi"}}]}', Said("hi", True)),
        ("openai", False, b'{"error":{"message":"no"}}', Said(error="no")),
        ("openai", False, b'{"choi', Said()),
        ("openai", True, b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', Said("hi")),
        ("openai", True, b"data: [DONE]\n\n", Said(ended=True)),
        ("openai", True, b"data: [DONE]", Said()),
        ("openai", True, b'data: {"error":{"message":"no"}}\n\n', Said(error="no")),
        ("anthropic", False, b'{"content":[{"type":"text","text":"hi"}]}', Said("hi", True)),
        ("anthropic", True, b'data: {"type":"message_stop"}\n\n', Said(ended=True)),
        ("anthropic", True, b'event: error\ndata: {"type":"error","error":{"message":"no"}}\n\n',
         Said(error="no")),
        ("responses", True, b'data: {"type":"response.output_text.delta","delta":"hi"}\n\n',
         Said("hi")),
        ("responses", True, b'data: {"type":"response.incomplete"}\n\n', Said(ended=True)),
        ("gemini", True, b'data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},'
         b'"finishReason":"STOP"}]}\n\n', Said("hi", True)),
    ],
)  # fmt: skip
def test_the_eyes_of_the_checker(dialect: str, stream: bool, body: bytes, heard: Said) -> None:
    assert said(dialect, body, stream=stream) == heard


@pytest.mark.parametrize(
    "text", ["", "short", "<a>" * 3, "<a>" * 3000, "<a>" * 3000 + "<", "<a>" * 3000 + "<b>"]
)
def test_a_packed_text_is_unpacked_as_it_was(text: str) -> None:
    assert unpack(pack(text)) == text
