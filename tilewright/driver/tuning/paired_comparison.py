"""Paired comparison of two programs, done twice: a difference must show in both runs.

The speed of a loaded model depends on the place of its memory and on the cores of its threads, for
as long as it is loaded. So a significant difference is measured once more, with both programs
loaded anew and in the other order, and counts only if it comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.tune.measure.significance import Comparison, faster
from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE, SLOWER, typical

# Runs both, the baseline first if told so; whichever was first is compared with the second.
RunPair = Callable[[bool], Comparison]


@dataclass(frozen=True)
class PairedComparison:
    """A program against its baseline: `FASTER`, `NO_DIFFERENCE`, `SLOWER`, or the failure."""

    result: str
    times: tuple[float, ...] = ()
    baseline_times: tuple[float, ...] = ()

    @property
    def gain(self) -> float:
        """The speedup over the baseline."""
        return typical(self.baseline_times) / typical(self.times)


def compare_twice(run_pair: RunPair) -> PairedComparison:
    """Compare two programs, and once more if one seems to be faster."""
    first = _compare_once(run_pair, False)
    if first.result not in (FASTER, SLOWER):
        return first
    again = _compare_once(run_pair, True)
    if again.result not in (FASTER, NO_DIFFERENCE, SLOWER):
        return again
    times, baseline_times = first.times + again.times, first.baseline_times + again.baseline_times
    outcome = PairedComparison(first.result, times, baseline_times)
    # Pairs and quartiles may disagree where the machine was busy: then there is no result.
    agreed = first.result == again.result and (outcome.gain > 1) == (first.result == FASTER)
    return outcome if agreed else replace(outcome, result=NO_DIFFERENCE)


def _compare_once(run_pair: RunPair, baseline_first: bool) -> PairedComparison:
    comparison = run_pair(baseline_first)
    if comparison.failure:
        return PairedComparison(comparison.failure)
    ours, baseline = comparison.times[::-1] if baseline_first else comparison.times
    if faster(ours, baseline).significant:
        return PairedComparison(FASTER, ours, baseline)
    slower = faster(baseline, ours).significant
    return PairedComparison(SLOWER if slower else NO_DIFFERENCE, ours, baseline)
