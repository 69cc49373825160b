"""The meaning of tensor programs: `run_program` computes every stage with NumPy.

A stage is computed in chunks of its axes, so that no intermediate grows beyond a fixed size. A sum
of products is a contraction of its two factors, which makes matrix products and convolutions fast.
In which order floats are added is NumPy's choice, unless `sums` says how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product as cartesian
from math import prod
from typing import Any, Literal

import numpy as np

from tilewright.arith.dtype_limits import neutral
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Binary, Expr, Reduce, Var
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import DType
from tilewright.core.errors import ExecutionError
from tilewright.ir.scalar_semantics import REDUCE_OPS, Array, quiet
from tilewright.ir.tensor.evaluator import Evaluator
from tilewright.ir.tensor.nodes import Program, Stage, Tensor

# The most elements an intermediate array may have.
MAX_ELEMENTS = 1 << 23

Axes = list[tuple[str, int]]
# How floats are added: as NumPy likes, one after the other, or in a type of more digits and range.
Sums = Literal["", "in turn", "wide"]


def run_program(
    program: Program,
    inputs: Mapping[str, Array],
    sizes: Mapping[str, int] | None = None,
    sums: Sums = "",
) -> dict[str, Array]:
    """The outputs of `program` by name; sizes that are dimensions of an input may be left out.

    Sums of more than `MAX_ELEMENTS` terms in all are not added in turn, since that would be slow.
    """
    known = {**_sizes_of(program, inputs), **(sizes or {})}
    tensors = {t.name: inputs[t.name] for t in program.inputs}
    for t in program.inputs:
        _check_input(t, inputs[t.name], known)
    with quiet():
        for stage in program.stages:
            tensors[stage.name] = _run_stage(stage, tensors, known, sums)
    return {name: tensors[name] for name in program.outputs}


def _sizes_of(program: Program, inputs: Mapping[str, Array]) -> dict[str, int]:
    missing = [t.name for t in program.inputs if t.name not in inputs]
    if missing:
        raise ExecutionError("interp.missing", f"no array for {', '.join(missing)}")
    return {
        dim.name: size
        for t in program.inputs
        for dim, size in zip(t.shape, inputs[t.name].shape, strict=False)
        if isinstance(dim, Var)
    }


def _check_input(t: Tensor, array: Array, sizes: Mapping[str, int]) -> None:
    shape = tuple(evaluate(dim, sizes) for dim in t.shape)
    if array.dtype != t.dtype.numpy or array.shape != shape:
        raise ExecutionError(
            "interp.argument",
            f"{t.name!r} cannot be an array of {array.dtype} and shape {list(array.shape)}",
            help=f"give {t.dtype.numpy} of shape {list(shape)}",
        )


def _run_stage(
    stage: Stage, tensors: Mapping[str, Array], sizes: Mapping[str, int], sums: Sums
) -> Array:
    shape = tuple(evaluate(dim, sizes) for dim in stage.shape)
    if any(size < 0 for size in shape):
        raise ExecutionError("interp.shape", f"{stage.name!r} would have shape {list(shape)}")
    result = np.empty(shape, stage.dtype.numpy)
    spatial: Axes = list(zip(stage.axes, shape, strict=True))
    reduced: Axes = []
    if isinstance(stage.body, Reduce):
        reduced = [(v.name, evaluate(n, sizes)) for v, n in stage.body.axes]
    constants = {name: np.array(size) for name, size in sizes.items()}
    if not stage.dtype.is_float or (
        sums == "in turn" and prod(n for _, n in spatial + reduced) > MAX_ELEMENTS
    ):
        sums = ""
    for box in _chunks(stage.body, spatial, reduced, sums):
        ranges = [np.arange(s.start, s.stop) for s in box]
        ranges += [np.arange(n) for _, n in reduced]
        names = [name for name, _ in spatial + reduced]
        variables = {
            name: values.reshape([-1 if d == n else 1 for d in range(len(ranges))])
            for n, (name, values) in enumerate(zip(names, ranges, strict=True))
        }
        evaluator = Evaluator({**constants, **variables}, tensors, len(ranges))
        extents = [len(values) for values in ranges]
        result[box] = _element(stage.body, evaluator, extents, len(spatial), sums)
    return result


def _chunks(body: Expr, spatial: Axes, reduced: Axes, sums: Sums) -> Iterator[tuple[slice, ...]]:
    """Boxes that cover the spatial axes, each small enough to be computed at once."""
    extents = dict(spatial + reduced)
    parts = _factors(body, sums) or [body.body if isinstance(body, Reduce) else body]
    steps = dict(spatial)
    while (size := _largest(parts, {**extents, **steps})) > MAX_ELEMENTS:
        halves = [(name, (n + 1) // 2) for name, n in steps.items() if n > 1]
        helpful = [h for h in halves if _largest(parts, {**extents, **steps, h[0]: h[1]}) < size]
        if not helpful:
            break
        steps.update(helpful[:1])
    return cartesian(*(list(_pieces(n, max(1, steps[name]))) for name, n in spatial))


def _pieces(extent: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, extent)) for start in range(0, extent, step))


def _largest(parts: Sequence[Expr], extents: Mapping[str, int]) -> int:
    """The elements of the largest array that computing `parts` needs."""
    if len(parts) == 1:
        return prod(extents.values())
    return max(prod(extents[v] for v in free_vars(e) if v in extents) for e in parts)


def _factors(body: Expr, sums: Sums) -> list[Expr]:
    """The two factors of a sum of products that is computed at once, none for anything else."""
    if sums == "in turn":
        return []
    match body:
        case Reduce(op="sum", body=Binary(op="mul", a=a, b=b)):
            return [a, b]
    return []


def _element(body: Expr, evaluator: Evaluator, extents: list[int], rank: int, sums: Sums) -> Array:
    """The values of `body` on the spatial axes, which are the first `rank` of the grid."""
    if not isinstance(body, Reduce):
        return np.broadcast_to(evaluator.value(body), extents)
    factors, wide = _factors(body, sums), _wide(body.dtype, sums)
    if factors:
        arrays = [_full_rank(evaluator.value(f), len(extents)) for f in factors]
        total = _contract([a.astype(wide) for a in arrays], extents, rank)
        return total.astype(body.dtype.numpy)
    values = np.broadcast_to(evaluator.value(body.body), extents)
    axes = tuple(range(rank, len(extents)))
    if body.op in ("any", "all"):
        return np.asarray(REDUCE_OPS[body.op](values, axis=axes))
    if body.op == "sum" and sums == "in turn":
        terms = values.astype(wide).reshape(*extents[:rank], prod(extents[rank:]))
        before = np.zeros((*extents[:rank], 1), wide)
        total = np.add.accumulate(np.concatenate([before, terms], axis=-1), axis=-1)[..., -1]
        return np.asarray(total).astype(body.dtype.numpy)
    start = wide.type(neutral(body.op, body.dtype).value)
    options = {"dtype": wide} if body.op in ("sum", "prod") else {}
    reduced = REDUCE_OPS[body.op](
        values.astype(wide, copy=False), axis=axes, initial=start, **options
    )
    return np.asarray(reduced).astype(body.dtype.numpy)


def _wide(dtype: DType, sums: Sums) -> np.dtype:
    """The type to accumulate in: half-precision floats are summed in single precision."""
    if sums == "wide":
        return np.dtype(np.longdouble if dtype.bits == 64 else np.float64)
    return np.dtype(np.float32) if dtype.is_float and dtype.bits < 32 else dtype.numpy


def _full_rank(array: Array, rank: int) -> Array:
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _contract(arrays: list[Array], extents: list[int], rank: int) -> Array:
    """The sum of products over the dimensions from `rank` on."""
    operands: list[Any] = []
    used: set[int] = set()
    for array in arrays:
        dims = [d for d, size in enumerate(array.shape) if size != 1]
        used.update(dims)
        operands += [array.reshape([array.shape[d] for d in dims]), dims]
    kept = [d for d in range(rank) if d in used]
    total = np.asarray(np.einsum(*operands, kept, optimize=True))
    # Along an axis that no factor depends on the same value is added again and again.
    repeats = prod(n for d, n in enumerate(extents) if d >= rank and d not in used)
    if repeats != 1:
        total = total * total.dtype.type(repeats) if repeats else np.zeros_like(total)
    shape = [extents[d] if d in kept else 1 for d in range(rank)]
    return np.broadcast_to(total.reshape(shape), extents[:rank])
