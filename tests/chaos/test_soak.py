"""Everything at once on real sockets, judged by the checker. `make soak` takes ten minutes.

Two minutes here: one of a process alone, one of workers, which are killed as well.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.chaos.checker import judged, table, wrong
from tests.chaos.lines import read
from tests.chaos.soak import Plan, soak

# Below the limit that pytest puts on a test; for longer runs there is `make soak`.
SECONDS = min(90.0, float(os.environ.get("UNDERSTUDY_SOAK", "60")))  # noqa: TID251 - a length
SEED = os.environ.get("UNDERSTUDY_SOAK_SEED", "1")  # noqa: TID251 - another mix of faults


@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateway_under_load_and_faults_breaks_no_law(tmp_path: Path, workers: int) -> None:
    folder = tmp_path / "soak"
    asyncio.run(soak(Plan(folder, SECONDS, seed=SEED, workers=workers)))
    rulings = judged(read(folder))
    assert wrong(rulings) == [], "\n".join(table(rulings))
