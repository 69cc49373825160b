from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.driver.tuning.paired_comparison import PairedComparison, compare_twice
from tilewright.tune.measure.significance import Comparison, faster
from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE, SLOWER


def _compare(*ratios: float) -> tuple[PairedComparison, list[bool]]:
    """Our time relative to the baseline's in each run, and which was first."""
    asked: list[bool] = []

    def run_pair(baseline_first: bool) -> Comparison:
        ours = [ratios[len(asked)] * (1 + 1e-4 * i) for i in range(20)]
        asked.append(baseline_first)
        baseline = [1.0] * 20
        return faster(baseline, ours) if baseline_first else faster(ours, baseline)

    return compare_twice(run_pair), asked


@for_each(
    ("ratios", "result"),
    [
        ((0.5, 0.5), FASTER),
        ((1.0,), NO_DIFFERENCE),
        ((1.5, 1.5), SLOWER),
        ((0.5, 1.0), NO_DIFFERENCE),
        ((0.5, 1.5), NO_DIFFERENCE),
        ((1.5, 0.5), NO_DIFFERENCE),
    ],
)
def test_what_is_decided_must_come_out_twice(ratios: tuple[float, ...], result: str) -> None:
    outcome, asked = _compare(*ratios)
    assert outcome.result == result
    assert asked == [False, True][: len(ratios)]
    assert len(outcome.times) == len(outcome.baseline_times) == 20 * len(ratios)
    assert max(outcome.baseline_times) == 1.0


def test_the_gain_is_told_from_both() -> None:
    assert _compare(0.5, 0.5)[0].gain == pytest.approx(2.0, rel=1e-2)


def test_pairs_that_win_without_a_gain_are_level() -> None:
    ours = [1.0] * 8 + [3.0] * 12  # faster in each pair but the undisturbed ones
    baseline = [0.9] * 8 + [5.0] * 12

    def run_pair(baseline_first: bool) -> Comparison:
        return faster(baseline, ours) if baseline_first else faster(ours, baseline)

    assert faster(ours, baseline, confidence=0.5).significant
    outcome = compare_twice(run_pair)
    assert outcome.gain < 1
    assert outcome.result == NO_DIFFERENCE


def test_a_failure_is_an_outcome() -> None:
    failed = Comparison(1.0, 1.0, False, "timeout: no answer")
    assert compare_twice(lambda baseline_first: failed).result == "timeout: no answer"
    first = faster([0.5] * 20, [1.0] * 20)
    outcome = compare_twice(lambda baseline_first: failed if baseline_first else first)
    assert outcome.result == "timeout: no answer"
