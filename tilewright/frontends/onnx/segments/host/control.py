"""Loops that cannot be native: what they carry is no tensor, or changes its shape by steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto

from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp


def loop(call: HostCall) -> tuple[Any, ...]:
    """Run a graph until its condition or the number of steps ends it; collect what it scans."""
    body = call.node.graph_attr("body")
    names = [v.name for v in body.input]
    limit, going = call.integer(0), call.input(1)
    going = True if going is None else bool(call.single(going, "its condition"))
    carried = list(call.inputs[2:])
    _check_body(call, body, 2 + len(carried), 1 + len(carried))
    rows: list[list[Any]] = [[] for _ in body.output[1 + len(carried) :]]
    step = 0
    while going and (limit is None or step < limit):
        given = [np.array(step, np.int64), np.array(going), *carried]
        results = list(call.nested(body, dict(zip(names, given, strict=True))))
        going = bool(call.single(results[0], "its condition"))
        carried = results[1 : 1 + len(carried)]
        for row, value in zip(rows, results[1 + len(carried) :], strict=True):
            row.append(value)
        step += 1
    return (*carried, *(_stacked(call, row) for row in rows))


def scan(call: HostCall) -> tuple[Any, ...]:
    """Run a graph on each slice of the last inputs; carry states, collect what it scans."""
    n, body = call.node, call.node.graph_attr("body")
    count = n.int_attr("num_scan_inputs")
    states, scanned = list(call.inputs[:-count]), call.inputs[-count:]
    _check_body(call, body, len(call.inputs), len(states))
    if n.opset < 9:
        raise call.failure("version 8 is native only, and something in its body is not")
    axes = n.ints_attr("scan_input_axes", (0,) * count)
    backward = n.ints_attr("scan_input_directions", (0,) * count)
    rows = [np.moveaxis(x, axis, 0) for x, axis in zip(scanned, axes, strict=True)]
    rows = [x[::-1] if b else x for x, b in zip(rows, backward, strict=True)]
    columns: list[list[Any]] = [[] for _ in body.output[len(states) :]]
    for slices in zip(*rows, strict=True):
        # not ascontiguousarray(), which would give a number a dimension
        given = (*states, *(np.asarray(x, order="C") for x in slices))
        named = zip((v.name for v in body.input), given, strict=True)
        results = list(call.nested(body, dict(named)))
        states, collected = results[: len(states)], results[len(states) :]
        for column, value in zip(columns, collected, strict=True):
            column.append(value)
    places = n.ints_attr("scan_output_axes", (0,) * len(columns))
    backward = n.ints_attr("scan_output_directions", (0,) * len(columns))
    columns = [c[::-1] if b else c for c, b in zip(columns, backward, strict=True)]
    stacks = [_stacked(call, column) for column in columns]
    moved = (np.moveaxis(y, 0, axis) for y, axis in zip(stacks, places, strict=True))
    return (*states, *map(np.ascontiguousarray, moved))


def sequence_map(call: HostCall) -> tuple[Any, ...]:
    """Run a graph on each element of the first input; other sequences go along with it."""
    body = call.node.graph_attr("body")
    names = [v.name for v in body.input]
    _check_body(call, body, len(call.inputs), 0)
    columns: list[list[Any]] = [[] for _ in body.output]
    lengths = {len(value) for value in call.inputs if isinstance(value, list)}
    if not isinstance(call.inputs[0], list) or len(lengths) != 1:
        raise call.failure("its first input is no sequence, or others differ from it in length")
    for i in range(len(call.inputs[0])):
        given = [value[i] if isinstance(value, list) else value for value in call.inputs]
        results = call.nested(body, dict(zip(names, given, strict=True)))
        for column, value in zip(columns, results, strict=True):
            column.append(value)
    return tuple(columns)


def _check_body(call: HostCall, body: GraphProto, takes: int, gives: int) -> None:
    """A body takes what the node has for it, and gives at least what the node carries on."""
    if len(body.input) != takes or len(body.output) < gives:
        raise call.failure(f"its body takes {len(body.input)} values, gives {len(body.output)}")


def _stacked(call: HostCall, row: list[Any]) -> Any:
    if not row:
        raise call.failure("it ran no step, so the shape of what it collects is not known")
    if any(value.shape != row[0].shape for value in row):
        raise call.failure("what it collects differs in shape from step to step")
    return np.stack(row)


def identity(call: HostCall) -> tuple[Any, ...]:
    """The value itself."""
    return (call.inputs[0],)


HOST: dict[str, HostOp] = {"Loop": loop, "Scan": scan, "SequenceMap": sequence_map}

# Operators that are native on tensors, and run here for other values.
OF_VALUES: dict[str, HostOp] = {"Identity": identity}
