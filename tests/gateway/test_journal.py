"""The journal: what is in it, what never is, and what a crash or a full disk leaves of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.desk import (
    Asked,
    Plays,
    Upstream,
    always,
    answer,
    in_turn,
    says,
    serving,
)
from tests.gateway.ink import Desk, config, told
from tests.rig import run
from understudy import Fault
from understudy.core.target import Attempt
from understudy.gateway.config import InvalidConfig
from understudy.gateway.journal import MOST
from understudy.observe.journal_file import LEAST, Shelf
from understudy.observe.journal_lines import Chain, Done, Head, Lost, Marks
from understudy.observe.record import Opening
from understudy.rehearse.replay_read import files_of, read_journals
from understudy.rehearse.replay_report import compare
from understudy.rehearse.replay_settings import Changes

# -- what is in it


def test_a_request_is_one_line_with_every_attempt(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def work() -> None:
        play = in_turn(says(503), says(503), Plays(200, answer()))
        async with Upstream(play) as up, serving(config(path, up.url)) as served:
            heard = await served.chat(x_request_id="r-1")
            assert heard.status == 200

    run(work())
    head, marks, *rest = told(path)
    assert (head["kind"], head["version"], head["part"]) == ("head", 1, 1)
    assert marks["kind"] == "marks"
    kinds = [line["kind"] for line in rest]
    assert sorted(kinds) == ["attempt", "attempt", "bench", "chain", "request"]
    [chain] = [line for line in rest if line["kind"] == "chain"]
    assert chain["model"] == "chat"
    assert [m["target"] for m in chain["members"]] == ["p/m", "p/n"]  # type: ignore[index,union-attr]
    [line] = [line for line in rest if line["kind"] == "request"]
    assert (line["id"], line["outcome"], line["status"]) == ("r-1", "ok", 200)
    attempts = line["attempts"]
    assert isinstance(attempts, list)
    assert [(a["target"], a.get("fault"), a.get("then")) for a in attempts] == [
        ("p/m", "transient", "retry"),
        ("p/m", "transient", "advance"),
        ("p/n", None, None),
    ]
    assert attempts[1]["benched"] == pytest.approx(5.0, abs=0.01)


def test_no_prompt_no_answer_no_word_of_a_provider_and_no_key_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    planted = ["pr0mpt", "4nswer", "sk-client", "k-provider", "adm1n", "0perator"]

    def play(asked: Asked) -> Plays:
        quoted = asked.json["messages"][0]["content"]  # type: ignore[index]
        if asked.json["model"] == "m":
            return says(400 if "bad" in quoted else 503, f"cannot take {quoted} with k-provider")
        return Plays(200, answer("4nswer"))

    async def work() -> None:
        async with Upstream(play) as up:
            gateway = '[gateway]\nkeys = ["sk-client"]\nadmin_key = "adm1n"\n'
            async with serving(gateway + config(path, up.url)) as served:
                for words in ("pr0mpt", "bad pr0mpt"):
                    body = {"model": "chat", "messages": [{"role": "user", "content": words}]}
                    for key in ("sk-client", "sk-client-wrong"):
                        headers = {"authorization": f"Bearer {key}"}
                        await served.ask("POST", "/v1/chat/completions", body, headers)
                order = {"key": "p/n", "seconds": 9, "why": "0perator pr0mpt"}
                admin = {"authorization": "Bearer adm1n"}
                await served.ask("POST", "/understudy/api/bench", order, admin)
                await served.ask("POST", "/understudy/api/unbench", {"key": "p/n"}, admin)

    run(work())
    text = path.read_text()
    assert '"outcome":"ok"' in text
    assert '"source":"operator"' in text
    assert [word for word in planted if word in text] == []


def test_orders_and_reloads_are_in_it_and_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    async def work() -> None:
        async with Upstream(always()) as up, serving(config(path, up.url)) as served:
            await served.chat()
            order = {"key": "p/m", "seconds": 60, "why": "x"}
            await served.ask("POST", "/understudy/api/bench", order)
            await served.chat()
            served.path.write_text(config(path, up.url, "[health]\nthreshold = 4\n"))
            served.runtime.reload()
            await served.chat()
            await served.ask("POST", "/understudy/api/unbench", {"key": "p/m"})
            await served.chat()

    run(work())
    library = read_journals([path])
    [only] = library.runs
    assert [only.eras[n].cooldown["threshold"] for n in (0, 1)] == [2.0, 4.0]
    assert [asked.chain.era for asked in only.requests] == [0, 0, 1, 1]
    assert [asked.attempts[-1].target for asked in only.requests] == ["p/m", "p/n", "p/n", "p/m"]
    found = compare(library, Changes())
    assert (found.changed, found.before) == ([], found.after)


# -- files


def test_full_files_are_put_aside_and_all_of_them_keep_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    desk = Desk(Shelf(path, LEAST, keep=2))
    for n in range(3000):
        desk.request(f"request-{n:04}")
        if n % 50 == 0:
            desk.journal.flush()
    desk.journal.close()
    files = files_of([str(path)])
    assert [file.name for file in files] == [
        "journal.jsonl.2", "journal.jsonl.1", "journal.jsonl",
    ]  # fmt: skip
    assert all(file.stat().st_size <= LEAST for file in files)
    assert sum(file.stat().st_size for file in files) > 2 * LEAST * 0.9
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    for file in files:
        head, *rest = told(file)
        assert head["kind"] == "head"
        assert {"chain", "marks"} <= {str(line["kind"]) for line in rest}
    library = read_journals(files)
    names = [asked.id for asked in library.runs[0].requests]
    first = int(names[0].removeprefix("request-"))
    assert names == [f"request-{n:04}" for n in range(first, 3000)]
    found = compare(library, Changes())
    assert found.changed == []


def test_without_files_to_keep_the_one_file_is_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    desk = Desk(Shelf(path, LEAST, keep=0))
    for n in range(1000):
        desk.request(f"{n}")
    desk.journal.close()
    assert [file.name for file in tmp_path.iterdir()] == ["journal.jsonl"]
    assert path.stat().st_size <= LEAST
    assert (
        told(path)[-1]["kind"] == "marks"
    )  # begun at the very end, and still says who is benched


def test_names_without_end_cost_neither_memory_nor_a_line_without_measure(tmp_path: Path) -> None:
    desk = Desk(Shelf(tmp_path / "journal.jsonl"))
    for n in range(5000):
        desk.request(f"{n}", f"p/{n}")
    desk.request("long", "p/" + "x" * 200_000)
    desk.request("after")
    desk.journal.close()
    assert len(desk.journal._chains) <= 4096
    library = read_journals([tmp_path / "journal.jsonl"])
    assert library.damages == 0
    assert library.runs[0].lost > 0
    assert library.requests == 5001
    assert library.runs[0].requests[-1].id == "after"


def test_while_the_disk_is_slow_entries_wait_and_beyond_a_number_are_counted(
    tmp_path: Path,
) -> None:
    desk = Desk(Shelf(tmp_path / "journal.jsonl"), waits=True)
    desk.request("first")
    desk.journal.flush()
    for n in range(MOST + 10):
        desk.journal.attempt(Opening("a", "openai", "chat", False, "", 1e9), FAILED, n)
    desk.journal.flush()
    assert len(desk.jobs) == 1
    desk.work()
    desk.journal.flush()
    desk.work()
    desk.journal.close()
    [only] = read_journals([tmp_path / "journal.jsonl"]).runs
    assert only.lost == 10


FAILED = Attempt("p/a", "failed", Fault.TRANSIENT, n=1, then="retry", next="p/a", began=100.0)


def test_a_run_goes_on_in_the_file_of_the_one_before_past_its_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Desk(Shelf(path))
    first.request("one")
    first.journal.close()
    path.write_bytes(path.read_bytes()[:-30])
    second = Desk(Shelf(path))
    second.journal._run = "second"
    second.request("two")
    second.journal.close()
    library = read_journals([path])
    assert (len(library.runs), library.damages, library.torn) == (2, 1, [])
    assert [asked.id for run in library.runs for asked in run.requests] == ["two"]


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    async def work() -> str:
        async with Upstream(always()) as up, serving(config(tmp_path / "j", up.url)):
            with pytest.raises(InvalidConfig) as caught:
                async with serving(config(tmp_path / "j", up.url)):
                    raise AssertionError("both write it")
            return str(caught.value)

    assert "journal.path: cannot be written:" in run(work())


@pytest.mark.parametrize(
    ("name", "worker", "files"),
    [
        ("journal.jsonl", 2, ["journal.2.jsonl", "journal.2b.jsonl"]),
        ("journal", 3, ["journal.3", "journal.3b"]),
    ],
)
def test_each_worker_has_a_file_of_its_own_and_its_successor_another(
    tmp_path: Path, name: str, worker: int, files: list[str]
) -> None:
    """A worker is replaced by one that is ready before it leaves."""
    shelf = Shelf(tmp_path / name)
    old, new = shelf.sheet(worker), shelf.sheet(worker)
    with pytest.raises(OSError, match="written by another process"):
        shelf.sheet(worker)
    old.close()
    later = shelf.sheet(worker)
    assert [sheet.shelf.path.name for sheet in (old, new, later)] == [*files, files[0]]
    new.close()
    later.close()


def test_lines_are_what_they_were(tmp_path: Path) -> None:
    """A journal of today must be read tomorrow: the bytes of every kind are pinned."""
    from understudy.observe.journal_lines import DECODER, ENCODER

    pinned = {
        b'{"kind":"lost","at":1.5,"lines":3}': Lost(1.5, 3),
        b'{"kind":"marks","at":0.5}': Marks(0.5),
        b'{"kind":"chain","n":1,"era":0,"model":"m","members":[]}': Chain(1, 0, "m", ()),
        b'{"kind":"request","id":"r","at":1.0,"chain":1,"stream":false,"outcome":"ok",'
        b'"status":200,"seconds":2.0}': Done("r", 1.0, 1, False, "ok", 200, 2.0),
    }
    for data, line in pinned.items():
        assert ENCODER.encode(line) == data
        assert DECODER.decode(data) == line
    assert Head.__struct_config__.tag == "head"
