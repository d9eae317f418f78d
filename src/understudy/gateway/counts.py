"""What workers counted, kept in their folder: a worker that ends takes none of it along.

Each writes down what it tells when it tells it, so that no later sum is less than an earlier
one. The supervisor adds up those who ended; their sum says whose it is, and nobody counts twice.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from understudy.observe.sums import added, lasting

SUFFIX = ".counts"
GONE = "gone.sum"  # of those who ended
HEAD = "# of"


def keep(folder: Path, name: str, text: str) -> None:
    """Write down what `name` tells of its counts."""
    _write(folder / f"{name}{SUFFIX}", lasting(text))


def fold(folder: Path, name: str) -> None:
    """`name` has ended: its counts go into the sum. For the supervisor only."""
    file = folder / f"{name}{SUFFIX}"
    told = _read(file)
    if told:
        names, before = _gone(folder)
        head = " ".join([HEAD, *sorted(names), name])
        _write(folder / GONE, f"{head}\n{added([before, told])}")
    file.unlink(missing_ok=True)


def kept(folder: Path, living: Collection[str]) -> list[str]:
    """The counts of everybody who is not among `living`."""
    files = {path.name.removesuffix(SUFFIX): path for path in folder.glob(f"*{SUFFIX}")}
    told = {name: _read(path) for name, path in files.items() if name not in living}
    # Last: whoever is folded in the meantime is in here.
    names, gone = _gone(folder)
    return [*(text for name, text in told.items() if name not in names), gone]


def _gone(folder: Path) -> tuple[set[str], str]:
    head, _, text = _read(folder / GONE).partition("\n")
    return set(head.removeprefix(HEAD).split()), text


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(path: Path, text: str) -> None:
    """Whole or not at all: others read it at any time."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
