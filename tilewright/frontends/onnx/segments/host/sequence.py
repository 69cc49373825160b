"""Sequences: lists of arrays, which may differ in shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp


def construct(call: HostCall) -> tuple[Any, ...]:
    """A sequence of the inputs."""
    return (list(call.inputs),)


def empty(call: HostCall) -> tuple[Any, ...]:
    """A sequence of nothing; what its elements would be matters to none of the operators."""
    return ([],)


def at(call: HostCall) -> tuple[Any, ...]:
    """The element at a position, counted from the back if it is negative."""
    items = call.inputs[0]
    return (items[_position(call, len(items), len(items) - 1)],)


def insert(call: HostCall) -> tuple[Any, ...]:
    """The sequence with one more element, before a position or at the end."""
    items = call.inputs[0]
    where = _position(call, len(items), len(items), index=2)
    return ([*items[:where], call.inputs[1], *items[where:]],)


def erase(call: HostCall) -> tuple[Any, ...]:
    """The sequence without one of its elements, the last one if none is named."""
    items = call.inputs[0]
    where = _position(call, len(items), len(items) - 1)
    return ([*items[:where], *items[where + 1 :]],)


def length(call: HostCall) -> tuple[Any, ...]:
    """How many elements there are."""
    return (np.array(len(call.inputs[0]), np.int64),)


def concat(call: HostCall) -> tuple[Any, ...]:
    """The elements joined along an axis that they have, or along a new one."""
    items, axis = call.inputs[0], call.node.int_attr("axis")
    if not items:
        raise call.failure("the sequence is empty")
    join = np.stack if call.node.int_attr("new_axis", 0) else np.concatenate
    return (join(items, axis=axis),)


def split(call: HostCall) -> tuple[Any, ...]:
    """An array cut along an axis: into parts of a size, of given sizes, or of one element each."""
    array, sizes = call.inputs[0], call.input(1)
    axis = call.node.int_attr("axis", 0)
    total = array.shape[axis]
    if sizes is None:
        parts = np.split(array, range(1, total), axis) if total else []
        keep = bool(call.node.int_attr("keepdims", 1))
        return ([part if keep else part.squeeze(axis) for part in parts],)
    if sizes.ndim == 0:
        if int(sizes) < 1:
            raise call.failure(f"parts of {int(sizes)} elements", "use a positive number")
        return (np.split(array, range(int(sizes), total, int(sizes)), axis) if total else [],)
    if sizes.sum() != total:
        raise call.failure(f"sizes {sizes.tolist()} do not add up to {total}")
    return (np.split(array, np.cumsum(sizes)[:-1], axis),)


def _position(call: HostCall, count: int, default: int, index: int = 1) -> int:
    given = call.integer(index, default)
    assert given is not None
    limit = count + (1 if index == 2 else 0)
    if not -count <= given < limit:
        raise call.failure(f"position {given} is outside a sequence of {count}")
    return given + count if given < 0 else given


HOST: dict[str, HostOp] = {
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceAt": at,
    "SequenceInsert": insert,
    "SequenceErase": erase,
    "SequenceLength": length,
    "ConcatFromSequence": concat,
    "SplitToSequence": split,
}
