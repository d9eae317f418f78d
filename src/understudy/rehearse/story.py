"""What happened, and what was meant to: stories compared in the words of logs and headers."""

from __future__ import annotations

from understudy.core.target import Attempt
from understudy.testing import told


class Story(list[Attempt]):
    """The attempts of one test, as they were made."""

    def __str__(self) -> str:
        return ", ".join(told(self))

    def expect(self, script: str) -> None:
        """Fails the test unless the story is this: `"p/a=transient, p/a=transient, p/b=ok"`."""
        wanted = [part.strip() for part in script.split(",") if part.strip()]
        found = told(self)
        if wanted == found:
            return
        same = next(
            (n for n, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b),
            min(len(wanted), len(found)),
        )
        at = found[same] if same < len(found) else "the end"
        meant = wanted[same] if same < len(wanted) else "the end"
        raise AssertionError(
            f"attempt {same + 1} was {at}, expected {meant}\n"
            f"  story:    {', '.join(found) or '(nobody was asked)'}\n"
            f"  expected: {', '.join(wanted) or '(nobody)'}"
        )

    def tries(self, target: str) -> int:
        """How often a target was really called."""
        return sum(a.target == target and a.outcome != "skipped" for a in self)

    @property
    def served(self) -> str:
        """Who answered last, "" if nobody did."""
        return next((a.target for a in reversed(self) if a.outcome == "ok"), "")
