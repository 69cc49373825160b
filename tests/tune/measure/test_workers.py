from __future__ import annotations

import sys

import pytest

from tilewright.core.errors import TuneError
from tilewright.core.worker.process import Answer, Limits
from tilewright.tune.measure.workers import check_started, tuning_worker


def test_workers_are_limited_to_one_thread() -> None:
    assert tuning_worker(["x"]).limits == Limits()
    assert tuning_worker(["x"], Limits(memory=7)).limits == Limits(memory=7)
    program = """
import os
print()
input()
print('{"n": ' + os.environ["OMP_NUM_THREADS"] + "}")
"""
    with tuning_worker([sys.executable, "-c", program]) as worker:
        assert worker.ask({}, 60).reply == {"n": 1}


def test_a_worker_that_does_not_start() -> None:
    check_started(Answer({}, "crashed: SIGSEGV"))
    with tuning_worker([sys.executable, "-c", "import missing_package"]) as worker:
        answer = worker.ask({}, 60)
    with pytest.raises(TuneError, match=r"measure\.start.*ModuleNotFoundError"):
        check_started(answer)
