"""`Loop` and `Scan` for ONNX's reference evaluator, which has them in part only.

Its `Loop` takes no step where no condition is given, and joins rows along their first axis, where
ONNX stacks them along a new one. Its `Scan` knows the first axis and the direction forwards. The
bodies are run by the reference itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Values = Mapping[str, Any]


class Loop(OpRun):
    """Steps as long as the condition holds and their number is not reached."""

    op_domain = ""
    # Set from the node by `OpRun`.
    body: Any
    _run_body: Callable[[Values], list[Any]]

    def need_context(self) -> bool:
        """A body may read what is outside of it."""
        return True

    def _run(
        self,
        limit: np.ndarray | None,
        condition: np.ndarray | None,
        *carried: Any,
        context: Values | None = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        names = self.body.input_names
        going = condition is None or bool(condition)
        values, rows = list(carried), list[list[np.ndarray]]()
        rows += [[] for _ in self.body.output_names[1 + len(carried) :]]
        step = 0
        while going and (limit is None or step < limit):
            given = (np.array(step, np.int64), np.array(going), *values)
            named = {**(context or {}), **dict(zip(names, given, strict=True))}
            condition, *results = self._run_body(named)
            going, step = bool(condition), step + 1
            values = results[: len(carried)]
            for row, value in zip(rows, results[len(carried) :], strict=True):
                row.append(value)
        return (*values, *map(_stacked, rows))


class Scan(OpRun):
    """One step for each slice along an axis, which may be any and be taken backwards."""

    op_domain = ""
    # Set from the node by `OpRun`.
    body: Any
    num_scan_inputs: int
    scan_input_axes: Sequence[int] | None
    scan_input_directions: Sequence[int] | None
    scan_output_axes: Sequence[int] | None
    scan_output_directions: Sequence[int] | None
    _run_body: Callable[[Values], list[Any]]

    def need_context(self) -> bool:
        """A body may read what is outside of it."""
        return True

    def _run(self, *args: Any, context: Values | None = None, **_: Any) -> tuple[Any, ...]:
        count = self.num_scan_inputs
        states, scanned = list(args[:-count]), args[-count:]
        collected = len(self.body.output_names) - len(states)
        rows = list[list[np.ndarray]]([] for _ in range(collected))
        slices = [
            _turned(np.moveaxis(x, axis, 0), turn)
            for x, axis, turn in zip(
                scanned,
                self.scan_input_axes or [0] * count,
                self.scan_input_directions or [0] * count,
                strict=True,
            )
        ]
        for elements in zip(*slices, strict=True):
            given = (*states, *map(np.asarray, elements))
            named = dict(zip(self.body.input_names, given, strict=True))
            results = self._run_body({**(context or {}), **named})
            states = results[: len(states)]
            for row, value in zip(rows, results[len(states) :], strict=True):
                row.append(value)
        return (*states, *self._joined(rows))

    def _joined(self, rows: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
        axes = self.scan_output_axes or [0] * len(rows)
        turned = self.scan_output_directions or [0] * len(rows)
        return [
            np.moveaxis(_turned(_stacked(row), turn), 0, axis)
            for row, axis, turn in zip(rows, axes, turned, strict=True)
        ]


def _turned(rows: np.ndarray, backwards: int) -> np.ndarray:
    return rows[::-1] if backwards else rows


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    """One array; without a step nothing says of which shape it is, which is no result."""
    return np.stack(rows)


OPERATORS = (Loop, Scan)
