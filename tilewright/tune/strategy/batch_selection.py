"""Which of many promising candidates to measure: parts that strategies are composed of.

    pick = epsilon_greedy(diverse(0.1), 0.05)
    pick(scored, 16, rng)

A part takes candidates with scores, the best first, and gives at most as many as asked for. Giving
fewer leaves places that `Strategy.propose` fills at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from tilewright.tune.candidate import Candidate, Value

Scored: TypeAlias = tuple[Candidate, float]
Pick: TypeAlias = Callable[[Sequence[Scored], int, Random], list[Candidate]]


def top(scored: Sequence[Scored], n: int, rng: Random) -> list[Candidate]:
    """The best."""
    return [candidate for candidate, _ in scored[:n]]


def epsilon_greedy(pick: Pick, epsilon: float) -> Pick:
    """`pick`, but each place is left to chance with probability `epsilon`."""

    def picked(scored: Sequence[Scored], n: int, rng: Random) -> list[Candidate]:
        return pick(scored, sum(rng.random() >= epsilon for _ in range(n)), rng)

    return picked


def diverse(weight: float) -> Pick:
    """Good candidates that together cover many values of the decisions.

    Greedily maximises scores, scaled to 0..1, plus `weight` times the share of a candidate's
    decisions that no other one of the batch has made so; being submodular, that is near the best.
    """

    def picked(scored: Sequence[Scored], n: int, rng: Random) -> list[Candidate]:
        pool = [(candidate, _scaled(score, scored)) for candidate, score in scored]
        covered: set[tuple[str, Value]] = set()
        batch: list[Candidate] = []
        while pool and len(batch) < n:
            gains = [score + weight * _new(candidate, covered) for candidate, score in pool]
            candidate, _ = pool.pop(gains.index(max(gains)))
            covered.update(candidate.decisions)
            batch.append(candidate)
        return batch

    return picked


def _scaled(score: float, scored: Sequence[Scored]) -> float:
    low, high = scored[-1][1], scored[0][1]
    return (score - low) / (high - low) if high > low else 0.0


def _new(candidate: Candidate, covered: set[tuple[str, Value]]) -> float:
    return sum(d not in covered for d in candidate.decisions) / max(1, len(candidate.decisions))
