"""Steps by which a model grows: one or few nodes around existing values.

Each is a function of the partial model and a value's name that returns the names of what it added.
What it proposes may be invalid: the partial model then takes it back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.random_values import is_float, random_shape

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu
    HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Not BitwiseNot Reciprocal Relu
    Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh
    ThresholdedRelu""".split()
BINARY = """Add Sub Mul Div Pow Mod Max Min PRelu Equal Less LessOrEqual Greater GreaterOrEqual And
    Or Xor BitwiseAnd BitwiseOr BitwiseXor Add Sub Mul Div Max Min""".split()
REDUCTIONS = """ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum
    ReduceSumSquare ReduceLogSumExp""".split()
# The interpreter compares each element of a TopK with all that are kept, one by one.
MAX_INSERTED = 1 << 18
ROWS = ("Softmax", "LogSoftmax", "Hardmax", "LpNormalization")


def unary(d: PartialModel, x: str) -> list[str]:
    """One operand, element by element."""
    return d.attempt(d.node(d.rng.choice(UNARY), [x]))


def binary(d: PartialModel, x: str) -> list[str]:
    """Two operands that broadcast, in either order."""
    op = d.rng.choice(BINARY)
    pair = [x, _partner(d, x)]
    d.rng.shuffle(pair)
    fmod = op == "Mod" and is_float(d.values[x].dtype)
    return d.attempt(d.node(op, pair, **({"fmod": 1} if fmod else {})))


def _partner(d: PartialModel, x: str) -> str:
    """A value of the same type that may broadcast with `x`: often one that is there."""
    array = d.values[x]
    same = [name for name, other in d.values.items() if other.dtype == array.dtype]
    if d.rng.random() < 0.4:
        return d.rng.choice(same)
    shape = [1 if d.rng.random() < 0.3 else size for size in array.shape]
    shape = shape[d.rng.choice((0, 0, 0, 1, 2)) :]
    if d.rng.random() < 0.15:
        shape = [d.rng.choice((1, 2, 3)), *shape]
    return d.fresh(array.dtype, shape)


def where(d: PartialModel, x: str) -> list[str]:
    """A choice between two values."""
    shape = [1 if d.rng.random() < 0.3 else size for size in d.values[x].shape]
    return d.attempt(d.node("Where", [d.fresh(np.dtype(bool), shape), x, _partner(d, x)]))


def clip(d: PartialModel, x: str) -> list[str]:
    """Between two limits, one of which may be absent."""
    dtype = d.values[x].dtype
    limits = [d.give(np.asarray(v).astype(dtype)) if d.rng.random() < 0.8 else "" for v in (0, 5)]
    return d.attempt(d.node("Clip", [x, *limits]))


def reduction(d: PartialModel, x: str) -> list[str]:
    """Over some of the axes."""
    axes = some_axes(d, x)
    given = [x, d.setting(axes)] if d.rng.random() < 0.8 else [x]
    return d.attempt(d.node(d.rng.choice(REDUCTIONS), given, keepdims=d.rng.randrange(2)))


def extreme(d: PartialModel, x: str) -> list[str]:
    """Where the largest or smallest element is."""
    options = {"keepdims": d.rng.randrange(2), "select_last_index": d.rng.randrange(2)}
    op = d.rng.choice(("ArgMax", "ArgMin"))
    return d.attempt(d.node(op, [x], axis=any_axis(d, x), **options))


def rows(d: PartialModel, x: str) -> list[str]:
    """Softmax and its like."""
    return d.attempt(d.node(d.rng.choice(ROWS), [x], axis=any_axis(d, x)))


def layer_norm(d: PartialModel, x: str) -> list[str]:
    """Normalized over the last axes."""
    axis = any_axis(d, x)
    shape = d.values[x].shape[axis:] if d.values[x].ndim else ()
    op = d.rng.choice(("LayerNormalization", "RMSNormalization"))
    return d.attempt(d.node(op, [x, d.fresh(d.values[x].dtype, shape)], axis=axis))


def transpose(d: PartialModel, x: str) -> list[str]:
    """The axes in another order."""
    perm = list(range(d.values[x].ndim))
    d.rng.shuffle(perm)
    return d.attempt(d.node("Transpose", [x], perm=perm))


def reshape(d: PartialModel, x: str) -> list[str]:
    """The same elements under another shape, one size of which may be left open."""
    shape = _factored(d, d.values[x].size)
    if shape and d.values[x].size and d.rng.random() < 0.4:
        shape[d.rng.randrange(len(shape))] = -1
    return d.attempt(d.node("Reshape", [x, d.setting(shape)]))


def _factored(d: PartialModel, size: int) -> list[int]:
    if size == 0:
        return [0, 0] if d.rng.random() < 0.5 else [0]
    shape = []
    for _ in range(d.rng.randrange(4)):
        divisors = [k for k in (1, 2, 3, 4, 5, 7, 8) if size % k == 0]
        shape.append(d.rng.choice(divisors))
        size //= shape[-1]
    shape.insert(d.rng.randrange(len(shape) + 1), size)
    return shape


def squeeze(d: PartialModel, x: str) -> list[str]:
    """Axes of size 1 come and go."""
    ones = [i for i, size in enumerate(d.values[x].shape) if size == 1]
    if ones and d.rng.random() < 0.5:
        return d.attempt(d.node("Squeeze", [x, d.setting(ones[:1])]))
    axis = d.rng.randrange(d.values[x].ndim + 1)
    return d.attempt(d.node("Unsqueeze", [x, d.setting([axis])]))


def slice_(d: PartialModel, x: str) -> list[str]:
    """A part along one or two axes, also backwards and beyond the ends."""
    axes = some_axes(d, x)[:2]
    limits = [[], [], []]  # type: list[list[int]]
    for axis in axes:
        size = d.values[x].shape[axis]
        step = d.rng.choice((1, 1, 1, 2, 3, -1, -2))
        low, high = d.rng.randrange(-size - 1, size + 2), d.rng.randrange(-size - 1, size + 9)
        for numbers, one in zip(limits, (low, high, step), strict=True):
            numbers.append(one)
    starts, ends, steps = limits
    given = [d.setting(v, 0.1) for v in (starts, ends, axes, steps)]
    return d.attempt(d.node("Slice", [x, *given]))


def concat(d: PartialModel, x: str) -> list[str]:
    """Several values one after another, some of them the same."""
    axis, array = any_axis(d, x), d.values[x]
    parts = [x]
    for _ in range(d.rng.randrange(3)):
        shape = [d.rng.choice((0, 1, 3)) if i == axis else s for i, s in enumerate(array.shape)]
        parts.append(d.fresh(array.dtype, shape) if d.rng.random() < 0.6 else x)
    d.rng.shuffle(parts)
    return d.attempt(d.node("Concat", parts, axis=axis))


def split(d: PartialModel, x: str) -> list[str]:
    """Two parts of any sizes."""
    axis, array = any_axis(d, x), d.values[x]
    size = array.shape[axis] if array.ndim else 0
    first = d.rng.randint(0, size)
    sizes = d.setting([first, size - first])
    return d.attempt(d.node("Split", [x, sizes], 2, axis=axis))


def pad(d: PartialModel, x: str) -> list[str]:
    """More elements around, or fewer where a padding is negative."""
    array = d.values[x]
    mode = d.rng.choice(("constant", "constant", "edge", "reflect", "wrap"))
    low = -1 if mode == "constant" else 0
    pads = [d.rng.randint(low, 2) for _ in range(2 * array.ndim)]
    given = [x, d.setting(pads)]
    if mode == "constant" and d.rng.random() < 0.5:
        given.append(d.fresh(array.dtype, ()))
    return d.attempt(d.node("Pad", given, mode=mode))


def expand(d: PartialModel, x: str) -> list[str]:
    """Broadcast to a larger shape, or repeated."""
    array = d.values[x]
    if d.rng.random() < 0.5:
        shape = [d.rng.choice((1, 2, 5)) if s == 1 else s for s in array.shape]
        shape = [d.rng.choice((1, 3)), *shape] if d.rng.random() < 0.3 else shape
        return d.attempt(d.node("Expand", [x, d.setting(shape)]))
    times = [d.rng.choice((0, 1, 1, 2, 3)) for _ in array.shape]
    return d.attempt(d.node("Tile", [x, d.setting(times)]))


def gather(d: PartialModel, x: str) -> list[str]:
    """Elements by their numbers, which count from the end where they are negative."""
    axis, array = any_axis(d, x), d.values[x]
    size = array.shape[axis] if array.ndim else 0
    op = d.rng.choice(("Gather", "GatherElements", "ScatterElements"))
    shape = (
        random_shape(d.rng, 1)
        if op == "Gather"
        else tuple(d.rng.randint(0, s) for s in array.shape)
    )
    if not size:
        return []
    draw = np.random.default_rng(d.rng.getrandbits(32))
    numbers = d.give(draw.integers(-size, size, shape, np.int64))
    if op != "ScatterElements":
        return d.attempt(d.node(op, [x, numbers], axis=axis))
    how = d.rng.choice(("add", "max", "min", "mul"))
    updates = d.fresh(array.dtype, shape)
    return d.attempt(d.node(op, [x, numbers, updates], axis=axis, reduction=how))


def running(d: PartialModel, x: str) -> list[str]:
    """Sums up to each element."""
    options = {"exclusive": d.rng.randrange(2), "reverse": d.rng.randrange(2)}
    return d.attempt(d.node("CumSum", [x, d.setting(any_axis(d, x))], **options))


def top(d: PartialModel, x: str) -> list[str]:
    """The largest or smallest elements and where they are."""
    axis, array = any_axis(d, x), d.values[x]
    size = array.shape[axis] if array.ndim else 0
    k = d.setting([d.rng.randint(0, min(size, MAX_INSERTED // max(1, array.size)))])
    return d.attempt(d.node("TopK", [x, k], 2, axis=axis, largest=d.rng.randrange(2)))


def matmul(d: PartialModel, x: str) -> list[str]:
    """A product with a matrix on either side."""
    array = d.values[x]
    if array.ndim == 0:
        return []
    other = d.rng.choice((1, 2, 3, 8, 17))
    if array.ndim > 1 and d.rng.random() < 0.4:
        return d.attempt(d.node("MatMul", [d.fresh(array.dtype, (other, array.shape[-2])), x]))
    batch = array.shape[:-2] if d.rng.random() < 0.3 else ()
    return d.attempt(d.node("MatMul", [x, d.fresh(array.dtype, (*batch, array.shape[-1], other))]))


def conv(d: PartialModel, x: str) -> list[str]:
    """A convolution with odd strides, dilations and paddings, with or without groups."""
    array = d.values[x]
    if array.ndim not in (3, 4, 5):
        return []
    axes, channels = array.ndim - 2, array.shape[1]
    kernel = [d.rng.choice((1, 2, 3)) for _ in range(axes)]
    groups = d.rng.choice([g for g in (1, 1, 2, 3, channels) if g and channels % g == 0] or [1])
    out = groups * d.rng.choice((1, 2, 5))
    given = [x, d.fresh(array.dtype, (out, channels // groups, *kernel))]
    if d.rng.random() < 0.5:
        given.append(d.fresh(array.dtype, (out,)))
    strides = [d.rng.choice((1, 1, 2, 3)) for _ in kernel]
    dilations = [d.rng.choice((1, 1, 2)) for _ in kernel]
    pads = [d.rng.randrange(3) for _ in range(2 * axes)]
    options: dict[str, Any] = {
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "group": groups,
    }
    return d.attempt(d.node("Conv", given, **options))


def pool(d: PartialModel, x: str) -> list[str]:
    """Windows of any kind of pooling."""
    axes = d.values[x].ndim - 2
    if axes not in (1, 2, 3):
        return []
    op = d.rng.choice(("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"))
    if op.startswith("Global"):
        return d.attempt(d.node(op, [x]))
    kernel = [d.rng.choice((1, 2, 3)) for _ in range(axes)]
    options: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [d.rng.choice((1, 2, 3)) for _ in kernel],
    }
    options["pads"] = [d.rng.randrange(k) for k in (*kernel, *kernel)]
    options["dilations"] = [d.rng.choice((1, 1, 2)) for _ in kernel]
    ceil = {"ceil_mode": d.rng.randrange(2)}
    return d.attempt(d.node(op, [x], **options, **ceil))


def resize(d: PartialModel, x: str) -> list[str]:
    """Up or down, in any of the modes."""
    array = d.values[x]
    sizes = [
        s if i < array.ndim - 2 else d.rng.choice((1, 2, 5, 9)) for i, s in enumerate(array.shape)
    ]
    where_ = d.rng.choice(("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))
    mode = d.rng.choice(("nearest", "linear", "cubic"))
    options: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where_}
    return d.attempt(d.node("Resize", [x, "", "", d.setting(sizes)], **options))


def triangle(d: PartialModel, x: str) -> list[str]:
    """One side of a diagonal."""
    k = d.setting(d.rng.randint(-3, 3))
    return d.attempt(d.node("Trilu", [x, k], upper=d.rng.randrange(2)))


def any_axis(d: PartialModel, x: str) -> int:
    """One of the axes; 0 where there are none."""
    rank = d.values[x].ndim
    return d.rng.randrange(rank) if rank else 0


def some_axes(d: PartialModel, x: str) -> list[int]:
    """At least one of the axes, in any order; none where there are none."""
    rank = d.values[x].ndim
    return d.rng.sample(range(rank), d.rng.randint(min(1, rank), rank))


def fitted(d: PartialModel, x: str, shape: Sequence[int]) -> str:
    """The elements of `x`, repeated or cut, under another shape; nothing where it has none."""
    have, want = d.values[x].size, math.prod(shape)
    if have == 0 or tuple(shape) == d.values[x].shape:
        return x if tuple(shape) == d.values[x].shape else ""
    nodes = [d.node("Reshape", [x, d.setting([-1], 0)])]
    if want > have:
        times = d.setting([-(-want // have)], 0)
        nodes.append(d.node("Tile", [nodes[-1].output[0], times]))
    ends = [d.setting([v], 0) for v in (0, want)]
    nodes.append(d.node("Slice", [nodes[-1].output[0], *ends]))
    nodes.append(d.node("Reshape", [nodes[-1].output[0], d.setting(shape, 0)]))
    made = d.attempt(*nodes)
    return made[-1] if made else ""
