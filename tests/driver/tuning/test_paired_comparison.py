from __future__ import annotations

import pytest

from tilewright.driver.tuning.paired_comparison import WON, Outcome, compare_twice
from tilewright.tune.measure.significance import Verdict, faster
from tilewright.tune.tuned_schedules import LEVEL, SLOWER


def _contest(*ratios: float) -> tuple[Outcome, list[bool]]:
    """Our time as a share of the rival's in each meeting, and who was first."""
    asked: list[bool] = []

    def run_pair(rival_first: bool) -> Verdict:
        ours = [ratios[len(asked)] * (1 + 1e-4 * i) for i in range(20)]
        asked.append(rival_first)
        its = [1.0] * 20
        return faster(its, ours) if rival_first else faster(ours, its)

    return compare_twice(run_pair), asked


@pytest.mark.parametrize(
    ("ratios", "result"),
    [
        ((0.5, 0.5), WON),
        ((1.0,), LEVEL),
        ((1.5, 1.5), SLOWER),
        ((0.5, 1.0), LEVEL),
        ((0.5, 1.5), LEVEL),
        ((1.5, 0.5), LEVEL),
    ],
)
def test_what_is_decided_must_come_out_twice(ratios: tuple[float, ...], result: str) -> None:
    outcome, asked = _contest(*ratios)
    assert outcome.result == result
    assert asked == [False, True][: len(ratios)]
    assert len(outcome.times) == len(outcome.rival_times) == 20 * len(ratios)
    assert max(outcome.rival_times) == 1.0


def test_the_gain_is_told_from_both() -> None:
    assert _contest(0.5, 0.5)[0].gain == pytest.approx(2.0, rel=1e-2)


def test_pairs_that_win_without_a_gain_are_level() -> None:
    ours = [1.0] * 8 + [3.0] * 12  # faster in each pair but the undisturbed ones
    its = [0.9] * 8 + [5.0] * 12

    def run_pair(rival_first: bool) -> Verdict:
        return faster(its, ours) if rival_first else faster(ours, its)

    assert faster(ours, its, confidence=0.5).significant
    outcome = compare_twice(run_pair)
    assert outcome.gain < 1
    assert outcome.result == LEVEL


def test_a_failure_is_an_outcome() -> None:
    failed = Verdict(1.0, 1.0, False, "timeout: no answer")
    assert compare_twice(lambda rival_first: failed).result == "timeout: no answer"
    first = faster([0.5] * 20, [1.0] * 20)
    outcome = compare_twice(lambda rival_first: failed if rival_first else first)
    assert outcome.result == "timeout: no answer"
