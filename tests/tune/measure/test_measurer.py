from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tune.measure.fake_builder import ARGV
from tests.tune.measure.models import write_job
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, Settings
from tilewright.tune.measure.process import Limits

SETTINGS = Settings(
    build_seconds=20, run_seconds=20, limits=Limits(memory=2 << 30), effort=Effort(most=5)
)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return write_job(tmp_path)


@pytest.fixture
def measurer(tmp_path: Path) -> Iterator[Measurer]:
    with Measurer(ARGV, SETTINGS, parent=tmp_path) as made:
        yield made


def programs(*traces: str) -> list[tuple[Candidate, str]]:
    return [(Candidate((("number", n),)), trace) for n, trace in enumerate(traces)]


def failures(results: list[Result]) -> list[str]:
    return [result.failure.partition(":")[0] for result in results]


def test_whatever_happens_costs_that_candidate_only(measurer: Measurer, job: Job) -> None:
    traces = ("copy good", "refuse", "copy wrong", "crash", "copy segfault", "copy memory")
    seen: list[tuple[Result, str]] = []
    results = measurer.measure(
        job, programs(*traces, "copy good"), on_result=lambda *one: seen.append(one)
    )
    assert failures(results) == ["", "refused", "wrong", "crashed", "crashed", "memory", ""]
    assert results[0].seconds == results[-1].seconds == pytest.approx(4e-6)
    assert results[2].failure.startswith("wrong: y is off by")
    assert "SIGSEGV" in results[4].failure
    assert [result.candidate for result in results] == [c for c, _ in programs(*traces, "")]
    assert seen == list(zip(results, [*traces, "copy good"], strict=True))
    assert not list(measurer.folder.glob("*.tw"))
