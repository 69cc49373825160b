"""Pooling; an adaptive pool whose windows differ in size is a product with a matrix of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.arith.expr import as_expr, as_int, const, product
from tilewright.core.dtypes import I64
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.frontends.torch.convert.conv import numbers
from tilewright.frontends.torch.convert.widened import widened
from tilewright.ops.conv.pool import AveragePoolAttrs, PoolAttrs, PoolIndicesAttrs
from tilewright.ops.elementwise.arithmetic import ModAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs


def _window(n: AtenCall, rank: int, dilated: bool) -> dict[str, Any]:
    kernel = numbers(n, "kernel_size", rank)
    pads = numbers(n, "padding", rank)
    return {
        "strides": numbers(n, "stride", rank) if n["stride"] else kernel,
        "pads": pads * 2,
        "dilations": numbers(n, "dilation", rank) if dilated else (1,) * rank,
        "kernel": kernel,
        "ceil": n["ceil_mode"],
    }


def max_pool(rank: int) -> Converter:
    """Maxima of windows, and where in their channel they were."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x, _ = _batched(c, n, rank)
        window = _window(n, rank, dilated=True)
        y = c.reshape(n, c.add(n, "max_pool", x, attrs=PoolAttrs(**window)), n.type.shape)
        if len(n.results) == 1:
            return y
        return y, _places(c, n, x, PoolIndicesAttrs(**window)) if 1 in n.used else None

    return convert


def _places(c: TorchContext, n: AtenCall, x: str, attrs: PoolIndicesAttrs) -> str:
    """Counted through all channels; what is left within the own one."""
    through = c.add(n, "max_pool_indices", x, attrs=attrs)
    elements = c.operand(n, product(c.type(x).shape[2:]), I64)
    return c.reshape(n, c.add(n, "mod", through, elements, attrs=ModAttrs()), n.type.shape)


def average_pool(rank: int) -> Converter:
    """Means of windows, with or without the padding counted."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x, batch = _batched(c, n, rank)
        window = _window(n, rank, dilated=False)
        attrs = AveragePoolAttrs(**window, count_pads=n["count_include_pad"])
        y = c.add(n, "average_pool", x, attrs=attrs)
        return y if batch else c.reshape(n, y, c.type(y).shape[1:])

    return convert


def _batched(c: TorchContext, n: AtenCall, rank: int) -> tuple[str, bool]:
    """The input with a batch, and whether it had one."""
    x = n["self"]
    shape = c.type(x).shape
    if len(shape) == rank + 2:
        return x, True
    return c.reshape(n, x, (const(1), *shape)), False


def adaptive_average(c: TorchContext, n: AtenCall) -> Result:
    """Means of windows that share out each axis as evenly as they can."""
    sizes = [as_int(as_expr(v)) for v in n["output_size"]]
    if any(size != 1 for size in sizes):
        return _shared_out(c, n)
    first = c.type(n["self"]).rank - len(sizes)
    axes = ReduceAttrs(tuple(range(first, first + len(sizes))), keepdims=True)
    return c.add(n, "reduce_mean", n["self"], attrs=axes)


@widened
def _shared_out(c: TorchContext, n: AtenCall) -> str:
    x: str = n["self"]
    sizes = [as_int(as_expr(v)) for v in n["output_size"]]
    first = c.type(x).rank - len(sizes)
    for i, size in enumerate(sizes):
        old = as_int(c.type(x).shape[first + i])
        if old is None or size is None:
            raise n.unsupported("an axis of dynamic size", "only to size 1, or of known sizes")
        if old != size:
            x = along(c, n, x, first + i, _shares(old, size))
    return x


def _shares(old: int, new: int) -> np.ndarray:
    """Each column the weights of one window: `floor(i * old / new)` to `ceil((i + 1) * ...)`."""
    weights = np.zeros((old, new))
    for i in range(new):
        start, stop = i * old // new, -(-(i + 1) * old // new)
        weights[start:stop, i] = 1 / (stop - start)
    return weights


def along(c: TorchContext, n: AtenCall, x: str, axis: int, weights: np.ndarray) -> str:
    """The elements along an axis multiplied by a matrix."""
    rank = c.type(x).rank
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    rows = c.transpose(n, x, perm)
    y = c.add(n, "matmul", rows, c.constant(weights, n.dtype, "weights"))
    return c.transpose(n, y, perm)


CONVERTERS: dict[str, Converter] = {
    **{f"aten.max_pool{d}d_with_indices": max_pool(d) for d in (2, 3)},
    **{f"aten.max_pool{d}d": max_pool(d) for d in (1, 2, 3)},
    **{f"aten.avg_pool{d}d": average_pool(d) for d in (1, 2, 3)},
    **{f"aten._adaptive_avg_pool{d}d": adaptive_average for d in (2, 3)},
    **{f"aten.adaptive_avg_pool{d}d": adaptive_average for d in (1, 2, 3)},
}
