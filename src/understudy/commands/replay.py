"""`understudy replay`: an incident again, under other settings."""

from __future__ import annotations

import json
from dataclasses import dataclass

from understudy.commands.progress import Say, bar, little_garbage
from understudy.rehearse.replay_read import files_of, read_journals
from understudy.rehearse.replay_report import compare, text, to_dict
from understudy.rehearse.replay_settings import read_changes


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    files: tuple[str, ...]
    settings: tuple[str, ...] = ()  # health.threshold=3
    as_json: bool = False


def replay(wanted: Wanted, *, echo: Say, note: Say, say: Say | None = None) -> bool:
    """Tell what would have changed; False if the same settings did not give the same decisions."""
    changes = read_changes(wanted.settings)
    with little_garbage():
        library = read_journals(files_of(wanted.files))
        found = compare(library, changes, bar(say, "requests"))
    if say is not None:
        say("\r\x1b[K")
    if wanted.as_json:
        echo(json.dumps(to_dict(found), ensure_ascii=False))
    else:
        echo(text(found))
        for line in found.notes:
            note(f"note: {line}")
    return bool(changes) or not found.changed
