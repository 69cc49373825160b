from __future__ import annotations

from pathlib import Path

from tilewright.core.dtypes import DTYPES
from tilewright.tune.measure.job import TOLERANCE, Job


def test_tolerances_are_of_types_that_are_rounded() -> None:
    assert all(DTYPES[name].kind in ("float", "complex") for name in TOLERANCE)
    assert Job(Path("w"), "host", (), ()).tolerance == TOLERANCE
