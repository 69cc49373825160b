"""Loops whose carried values are no tensors, or change their shapes from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontends.onnx.host.call import HostCall, HostOp


def loop(call: HostCall) -> tuple[Any, ...]:
    """Run a graph until its condition or the number of steps ends it; collect what it scans."""
    body = call.node.graph_attr("body")
    names = [v.name for v in body.input]
    limit, going = call.integer(0), call.input(1)
    going = True if going is None else bool(going)
    carried = list(call.inputs[2:])
    rows: list[list[Any]] = [[] for _ in body.output[1 + len(carried) :]]
    step = 0
    while going and (limit is None or step < limit):
        given = [np.array(step, np.int64), np.array(going), *carried]
        results = list(call.nested(body, dict(zip(names, given, strict=True))))
        going = bool(results[0])
        carried = results[1 : 1 + len(carried)]
        for row, value in zip(rows, results[1 + len(carried) :], strict=True):
            row.append(value)
        step += 1
    return (*carried, *(_stacked(call, row) for row in rows))


def sequence_map(call: HostCall) -> tuple[Any, ...]:
    """Run a graph on each element of the first input; other sequences go along with it."""
    body = call.node.graph_attr("body")
    names = [v.name for v in body.input]
    columns: list[list[Any]] = [[] for _ in body.output]
    for i in range(len(call.inputs[0])):
        given = [value[i] if isinstance(value, list) else value for value in call.inputs]
        results = call.nested(body, dict(zip(names, given, strict=True)))
        for column, value in zip(columns, results, strict=True):
            column.append(value)
    return tuple(columns)


def _stacked(call: HostCall, row: list[Any]) -> Any:
    if not row:
        raise call.failure("it ran no step, so the shape of what it collects is not known")
    if any(value.shape != row[0].shape for value in row):
        raise call.failure("what it collects differs in shape from step to step")
    return np.stack(row)


def identity(call: HostCall) -> tuple[Any, ...]:
    """The value itself."""
    return (call.inputs[0],)


HOST: dict[str, HostOp] = {"Loop": loop, "SequenceMap": sequence_map}

# Operators that are native on tensors, and run here for other values.
OF_VALUES: dict[str, HostOp] = {"Identity": identity}
