"""`understudy replay`: an incident again, under other settings."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass

from understudy.rehearse.replay import Progress
from understudy.rehearse.replay_read import files_of, read_journals
from understudy.rehearse.replay_report import compare, text, to_dict
from understudy.rehearse.replay_settings import read_changes

Say = Callable[[str], None]
BAR = 24  # characters
SELDOM = 50_000  # objects between looks for garbage; a replay makes little


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    files: tuple[str, ...]
    settings: tuple[str, ...] = ()  # health.threshold=3
    as_json: bool = False


def replay(wanted: Wanted, *, echo: Say, note: Say, say: Say | None = None) -> bool:
    """Tell what would have changed; False if the same settings did not give the same decisions."""
    changes = read_changes(wanted.settings)
    before = gc.get_threshold()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        library = read_journals(files_of(wanted.files))
        found = compare(library, changes, _bar(say))
    finally:
        gc.set_threshold(*before)
    if say is not None:
        say("\r\x1b[K")
    if wanted.as_json:
        echo(json.dumps(to_dict(found), ensure_ascii=False))
    else:
        echo(text(found))
        for line in found.notes:
            note(f"note: {line}")
    return bool(changes) or not found.changed


def _bar(say: Say | None) -> Progress | None:
    if say is None:
        return None

    def told(done: int, total: int) -> None:
        filled = BAR * done // max(total, 1)
        say(f"\r[{'#' * filled}{'.' * (BAR - filled)}] {done:,}/{total:,} requests")

    return told
