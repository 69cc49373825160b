"""Two programs timed against each other, twice: a difference must show in both runs.

The speed of a loaded model depends on the place of its memory and on the cores of its threads, for
as long as it is loaded. So a significant difference is measured once more, with both programs
loaded anew and in the other order, and counts only if it comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilewright.tune.measure.significance import Verdict, faster
from tilewright.tune.tuned_schedules import LEVEL, SLOWER, typical

# Runs both, the rival first if that is asked for; the verdict is on whichever was first.
RunPair = Callable[[bool], Verdict]
WON = ""


@dataclass(frozen=True)
class Outcome:
    """How the first program did: `WON`, `LEVEL`, `SLOWER`, or why nothing can be said."""

    result: str
    times: tuple[float, ...] = ()
    rival_times: tuple[float, ...] = ()

    @property
    def gain(self) -> float:
        """How many times as fast as its rival it was."""
        return typical(self.rival_times) / typical(self.times)


def compare_twice(run_pair: RunPair) -> Outcome:
    """Run two programs against each other, and once more if one seems to be faster."""
    first = _outcome(run_pair, False)
    if first.result not in (WON, SLOWER):
        return first
    again = _outcome(run_pair, True)
    if again.result not in (WON, LEVEL, SLOWER):
        return again
    times, rival_times = first.times + again.times, first.rival_times + again.rival_times
    outcome = Outcome(first.result, times, rival_times)
    # Pairs and quartiles may disagree where the machine was busy: then nothing was decided.
    agreed = first.result == again.result and (outcome.gain > 1) == (first.result == WON)
    return outcome if agreed else replace(outcome, result=LEVEL)


def _outcome(run_pair: RunPair, rival_first: bool) -> Outcome:
    verdict = run_pair(rival_first)
    if verdict.failure:
        return Outcome(verdict.failure)
    ours, its = verdict.times[::-1] if rival_first else verdict.times
    if faster(ours, its).significant:
        return Outcome(WON, ours, its)
    return Outcome(SLOWER if faster(its, ours).significant else LEVEL, ours, its)
