"""How the generations of Gemini are asked to think, as rows."""

from __future__ import annotations

import re
from typing import Literal

Form = Literal["none", "budget", "level"]

_VERSION = re.compile(r"gemini-(\d+(?:\.\d+)?)")
_ROWS: tuple[tuple[float, Form], ...] = ((3.0, "level"), (2.5, "budget"), (0.0, "none"))

_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192}  # tokens; else the next
_LARGE_BUDGET = 24576
_LEVELS = {"none": "MINIMAL", "minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM"}  # else HIGH
_LEAST_PRO_BUDGET = 128  # a Pro model always thinks


def form_of(model: str) -> Form:
    """The way to ask this model for thinking; a name without a version is taken as new."""
    found = _VERSION.search(model)
    version = float(found[1]) if found else 0.0 if "gemma" in model else 99.0
    return next(form for since, form in _ROWS if since <= version)


def is_signed(model: str) -> bool:
    """Whether the model insists on a thought signature with every tool call of a turn."""
    return form_of(model) == "level"


def budget_of(effort: str, model: str) -> int:
    budget = _BUDGETS.get(effort, _LARGE_BUDGET)
    return max(budget, _LEAST_PRO_BUDGET) if "-pro" in model else budget


def level_of(effort: str, model: str) -> str:
    level = _LEVELS.get(effort, "HIGH")
    return "LOW" if level == "MINIMAL" and "-pro" in model else level
