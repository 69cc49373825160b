"""Decision trees as ONNX writes them, turned into nodes that all ask `feature <= value`.

Other questions are asked of neighbouring numbers, or in several steps: `x < v` is `x <= w` for the
greatest number `w` below `v`, `x == v` is `x <= v` but not `x <= w`, and being one of several
numbers is a chain of such questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class TreeNodes:
    """The nodes of all trees; one that has not been given a question is a leaf."""

    dtype: np.dtype
    feature: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    yes: list[int] = field(default_factory=list)
    no: list[int] = field(default_factory=list)
    missing: list[bool] = field(default_factory=list)

    def new(self) -> int:
        """A node, as yet a leaf."""
        number = len(self.feature)
        self.feature.append(0)
        self.value.append(0.0)
        self.yes.append(number)
        self.no.append(number)
        self.missing.append(False)
        return number

    def at_most(self, k: int, feature: int, value: float, yes: int, no: int, nan: bool) -> None:
        """Node `k` asks `feature <= value`; `nan` is the answer for a missing feature."""
        self.feature[k], self.value[k] = feature, value
        self.yes[k], self.no[k], self.missing[k] = yes, no, nan

    def below(self, value: float) -> float:
        """The greatest number below `value`; nothing is at most the NaN below all numbers."""
        found = np.nextafter(self.dtype.type(value), self.dtype.type(-np.inf))
        return float("nan") if value == -np.inf else float(found)

    def equal(self, k: int, feature: int, value: float, yes: int, no: int, nan: bool) -> None:
        """Node `k` asks `feature == value`, in two steps."""
        second = self.new()
        self.at_most(k, feature, value, second, no, nan)
        self.at_most(second, feature, self.below(value), no, yes, False)

    def member(
        self, k: int, feature: int, values: Sequence[float], yes: int, no: int, nan: bool
    ) -> None:
        """Node `k` asks whether a feature is one of `values`."""
        steps = [k, *(self.new() for _ in values[1:])]
        for step, value, other in zip(steps, values, [*steps[1:], no], strict=True):
            self.equal(step, feature, value, yes, other, nan and step == k)

    def ask(
        self, k: int, mode: str, feature: int, value: float, yes: int, no: int, nan: bool
    ) -> None:
        """Node `k` asks as ONNX's `mode` says."""
        MODES[mode](self, k, feature, value, yes, no, nan)

    def depth(self, roots: Sequence[int]) -> int | None:
        """The number of steps from a root to its farthest leaf; `None` if a path never ends."""
        yes, no = np.array(self.yes), np.array(self.no)
        place, steps = np.array(roots, np.int64), 0
        while True:
            inner = place[(yes[place] != place) | (no[place] != place)]
            if not inner.size:
                return steps
            place, steps = np.unique(np.concatenate([yes[inner], no[inner]])), steps + 1
            if steps > len(yes):
                return None

    def leaves_first(self) -> np.ndarray:
        """The new number of every node, such that leaves come before all others."""
        yes = np.array(self.yes)
        is_leaf = yes == np.arange(len(yes))
        is_leaf &= np.array(self.no) == yes
        numbers = np.empty(len(yes), np.int64)
        numbers[np.argsort(~is_leaf, kind="stable")] = np.arange(len(yes))
        return numbers


Ask = Callable[[TreeNodes, int, int, float, int, int, bool], None]


def _less(f: TreeNodes, k: int, i: int, v: float, yes: int, no: int, nan: bool) -> None:
    f.at_most(k, i, f.below(v), yes, no, nan)


def _greater(f: TreeNodes, k: int, i: int, v: float, yes: int, no: int, nan: bool) -> None:
    f.at_most(k, i, v, no, yes, not nan)


def _not_less(f: TreeNodes, k: int, i: int, v: float, yes: int, no: int, nan: bool) -> None:
    f.at_most(k, i, f.below(v), no, yes, not nan)


def _differs(f: TreeNodes, k: int, i: int, v: float, yes: int, no: int, _: bool) -> None:
    f.equal(k, i, v, no, yes, False)  # a missing feature differs from every number


MODES: dict[str, Ask] = {
    "BRANCH_LEQ": TreeNodes.at_most,
    "BRANCH_LT": _less,
    "BRANCH_GTE": _not_less,
    "BRANCH_GT": _greater,
    "BRANCH_EQ": TreeNodes.equal,
    "BRANCH_NEQ": _differs,
}
