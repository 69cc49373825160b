"""Random operators and blocks for `cpu_sweep.py`: the kinds, and how each is drawn.

A drawing whose work is out of bounds is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
from random_case import Case


def _picture(case: Case, low: int, high: int, channels: tuple[int, int]) -> tuple[int, ...]:
    """A batch of pictures, mostly one."""
    batch = case.random.choice((1, 1, 1, 2, 4, 8))
    side = case.size(low, high)
    return (batch, case.size(*channels), side, side)


def _conv(case: Case) -> None:
    """A convolution of any window, with or without an activation."""
    window = case.random.choice((1, 1, 3, 3, 3, 5, 7))
    stride = case.random.choice((1, 1, 2))
    shape = _picture(case, 7, 224, (3, 512))
    filters = case.size(8, 512)
    y, _ = case.conv(case.input(*shape), shape, filters, window, stride)
    if case.random.random() < 0.5:
        case.add("Relu", y)
    case.text = f"{shape} to {filters}, {window}x{window}, stride {stride}"


def _conv_dilated(case: Case) -> None:
    """A convolution with holes."""
    window, dilation = case.random.choice((3, 3, 5)), case.random.choice((2, 3, 4))
    stride = case.random.choice((1, 1, 2))
    shape = _picture(case, 14, 160, (3, 256))
    filters = case.size(8, 256)
    case.conv(case.input(*shape), shape, filters, window, stride, dilation)
    case.text = f"{shape} to {filters}, {window}x{window}, stride {stride}, dilation {dilation}"


def _conv_grouped(case: Case) -> None:
    """A convolution in groups of a few channels each."""
    window, stride = case.random.choice((3, 3, 5, 1)), case.random.choice((1, 2))
    groups, width = case.size(2, 64), case.random.choice((2, 3, 4, 6, 8, 12, 16, 24, 32))
    each = case.random.choice((1, 1, 2)) * width
    batch, _, height, _ = _picture(case, 7, 128, (3, 8))
    shape = (batch, groups * width, height, height)
    case.conv(case.input(*shape), shape, groups * each, window, stride, group=groups)
    case.text = f"{shape} in {groups} groups to {groups * each}, {window}x{window}, stride {stride}"


def _conv_depthwise(case: Case) -> None:
    """A convolution of each channel by itself."""
    window, stride = case.random.choice((3, 3, 5, 7)), case.random.choice((1, 2))
    shape = _picture(case, 7, 160, (16, 960))
    y, _ = case.conv(case.input(*shape), shape, shape[1], window, stride, group=shape[1])
    if case.random.random() < 0.5:
        case.add("HardSwish", y)
    case.text = f"{shape}, {window}x{window}, stride {stride}"


def _conv_transposed(case: Case) -> None:
    """A convolution that makes a picture larger."""
    window = case.random.choice((2, 3, 4))
    shape = _picture(case, 7, 64, (16, 256))
    filters = case.size(8, 256)
    weight = case.weight(shape[1], filters, window, window, fan_in=shape[1])
    x = case.input(*shape)
    case.add("ConvTranspose", x, weight, kernel_shape=[window] * 2, strides=[2, 2])
    pixels = shape[0] * shape[2] * shape[3]
    case.work += 2.0 * pixels * shape[1] * filters * window * window
    case.bytes += 16.0 * pixels * filters
    case.text = f"{shape} to {filters}, {window}x{window}, stride 2"


def _pool(case: Case) -> None:
    """The largest or the mean of a window."""
    op = case.random.choice(("MaxPool", "AveragePool"))
    window = case.random.choice((2, 3, 3, 5))
    stride = case.random.choice((1, 2, 2))
    shape = _picture(case, 14, 224, (16, 512))
    pads = [window // 2] * 4 if window % 2 else [0] * 4
    kernel = {"kernel_shape": [window] * 2, "strides": [stride] * 2, "pads": pads}
    case.add(op, case.input(*shape), **kernel)
    case.work += math.prod(shape) * (window / stride) ** 2
    case.bytes += 4 * math.prod(shape) / stride**2
    case.text = f"{op} {shape}, {window}x{window}, stride {stride}"


def _linear(case: Case) -> None:
    """A product with constant weights, some with an activation."""
    rows, into, out = case.size(1, 1024), case.size(16, 4096), case.size(16, 4096)
    y = case.linear(case.input(rows, into), rows, into, out)
    if case.random.random() < 0.5:
        case.add(case.random.choice(("Relu", "Gelu", "Tanh")), y)
    case.text = f"{rows}x{into} by {into}x{out}"


def _linear_open(case: Case) -> None:
    """The same with the number of rows left open."""
    _linear(case)
    case.open_rows = True


def _matmul(case: Case) -> None:
    """A product of two inputs."""
    m, k, n = case.size(1, 1024), case.size(16, 2048), case.size(16, 2048)
    case.add("MatMul", case.input(m, k), case.input(k, n))
    case.work += 2.0 * m * k * n
    case.bytes += 4.0 * m * n
    case.text = f"{m}x{k} by {k}x{n}"


def _matmul_batched(case: Case) -> None:
    """Many small products of two inputs."""
    batch, m, k, n = case.size(2, 128), case.size(1, 256), case.size(8, 256), case.size(8, 256)
    case.add("MatMul", case.input(batch, m, k), case.input(batch, k, n))
    case.work += 2.0 * batch * m * k * n
    case.bytes += 4.0 * batch * m * n
    case.text = f"{batch} of {m}x{k} by {k}x{n}"


def _attend(case: Case, query: str, key: str, value: str, width: int) -> str:
    """Attention over operands (batch, heads, length, width), as exporters write it."""
    scores = case.add("MatMul", query, case.add("Transpose", key, perm=[0, 1, 3, 2]))
    scaled = case.add("Mul", scores, case.constant(np.float32(width**-0.5)))
    return case.add("MatMul", case.add("Softmax", scaled, axis=-1), value)


def _attention(case: Case) -> None:
    """Attention of several heads, without a mask."""
    batch, heads, width = case.random.choice((1, 1, 2, 8, 50)), case.size(1, 16), case.size(16, 128)
    queries, keys = case.size(1, 512), case.size(16, 512)
    q = case.input(batch, heads, queries, width)
    k, v = case.input(batch, heads, keys, width), case.input(batch, heads, keys, width)
    _attend(case, q, k, v, width)
    case.work += 4.0 * batch * heads * queries * keys * width
    case.bytes += 8.0 * batch * heads * queries * keys
    case.text = f"{batch}x{heads} heads, {queries} on {keys}, width {width}"


def _softmax(case: Case) -> None:
    """A softmax over some axis."""
    shape = (case.size(1, 64), case.size(8, 512), case.size(8, 512))
    axis = case.random.choice((1, 2, 2))
    case.add("Softmax", case.input(*shape), axis=axis)
    case.work += 8 * math.prod(shape)
    case.bytes += 4 * math.prod(shape)
    case.text = f"{shape}, axis {axis}"


def _norm(case: Case) -> None:
    """A normalisation of rows, or of each channel's picture."""
    if case.random.random() < 0.6:
        rows, width = case.size(1, 2048), case.size(32, 2048)
        shape: tuple[int, ...] = (rows, width)
        x = case.input(*shape)
        case.add("LayerNormalization", x, case.weight(width), case.weight(width), axis=-1)
        case.text = f"layers {shape}"
    else:
        shape = _picture(case, 7, 112, (8, 512))
        x, channels = case.input(*shape), shape[1]
        case.add("InstanceNormalization", x, case.weight(channels), case.weight(channels))
        case.text = f"instances {shape}"
    case.work += 6 * math.prod(shape)
    case.bytes += 4 * math.prod(shape)


def _elementwise(case: Case) -> None:
    """A chain of element-wise operators, one of them with a row."""
    shape = (case.size(1, 16), case.size(8, 512), case.size(8, 4096))
    y = case.add("Add", case.input(*shape), case.weight(shape[-1]))
    ops = [case.random.choice(("Relu", "Sigmoid", "Tanh", "Exp", "Gelu", "Abs")) for _ in range(3)]
    for op in ops:
        y = case.add(op, y)
    case.add("Mul", y, case.input(*shape))
    case.work += 20 * math.prod(shape)
    case.bytes += 4 * math.prod(shape)
    case.text = f"{shape}, add, {', '.join(ops).lower()}, multiply"


def _reduce(case: Case) -> None:
    """A reduction over any axes."""
    shape = (case.size(1, 64), case.size(8, 512), case.size(8, 1024))
    axes = case.random.choice(([0], [1], [2], [0, 1], [1, 2], [0, 2]))
    op = case.random.choice(("ReduceSum", "ReduceMean", "ReduceMax"))
    case.add(op, case.input(*shape), case.constant(np.array(axes, np.int64)), keepdims=0)
    case.work += math.prod(shape)
    case.text = f"{op} {shape}, axes {axes}"


def _movement(case: Case) -> None:
    """Data that only moves: transposed, or put side by side."""
    shape = (case.size(1, 16), case.size(4, 256), case.size(4, 256), case.size(2, 64))
    if case.random.random() < 0.6:
        perm = case.random.choice(([0, 2, 1, 3], [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 1, 0]))
        case.add("Transpose", case.input(*shape), perm=perm)
        case.text = f"{shape} transposed by {perm}"
    else:
        axis = case.random.choice((1, 2, 3))
        case.add("Concat", case.input(*shape), case.input(*shape), axis=axis)
        case.text = f"two {shape} along axis {axis}"
    case.bytes *= 2


def _resize(case: Case) -> None:
    """A picture made larger."""
    mode = case.random.choice(("nearest", "linear"))
    shape = _picture(case, 7, 96, (3, 256))
    scales = case.constant(np.array([1, 1, 2, 2], np.float32))
    how = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    case.add("Resize", case.input(*shape), "", scales, **how)
    case.work += 16 * math.prod(shape)
    case.bytes += 16 * math.prod(shape)
    case.text = f"{shape} twice as large, {mode}"


def _embedding(case: Case) -> None:
    """Rows of a table, added to others and normalised."""
    words, width = case.size(100, 20000), case.size(32, 1024)
    batch, length = case.random.choice((1, 4, 16)), case.size(8, 512)
    words_read = case.indices(batch, length, below=words)
    rows = case.add("Gather", case.weight(words, width), words_read)
    summed = case.add("Add", rows, case.weight(length, width))
    case.add("LayerNormalization", summed, case.weight(width), case.weight(width), axis=-1)
    case.work += 8 * batch * length * width
    case.text = f"{batch}x{length} of {words} words, width {width}"


def _residual(case: Case) -> None:
    """Two convolutions and what came in."""
    shape = _picture(case, 7, 112, (16, 256))
    x = case.input(*shape)
    y, _ = case.conv(x, shape, shape[1], 3)
    y, _ = case.conv(case.add("Relu", y), shape, shape[1], 3)
    case.add("Relu", case.add("Add", y, x))
    case.text = f"{shape}"


def _inverted(case: Case) -> None:
    """An inverted residual with squeeze and excitation."""
    shape = _picture(case, 7, 112, (8, 128))
    window, wide = case.random.choice((3, 5)), shape[1] * case.random.choice((3, 4, 6))
    x = case.input(*shape)
    y, middle = case.conv(x, shape, wide, 1)
    y, middle = case.conv(case.add("HardSwish", y), middle, wide, window, group=wide)
    y = case.add("HardSwish", y)
    few = max(8, wide // 16 * 4)
    pooled = (shape[0], wide, 1, 1)
    gate, small = case.conv(case.add("GlobalAveragePool", y), pooled, few, 1)
    gate, _ = case.conv(case.add("Relu", gate), small, wide, 1)
    y, _ = case.conv(case.add("Mul", y, case.add("HardSigmoid", gate)), middle, shape[1], 1)
    case.add("Add", y, x)
    case.text = f"{shape} to {wide}, {window}x{window}"


def _mlp(case: Case) -> None:
    """Layer norm, two products with GELU between, and what came in."""
    rows, width = case.size(1, 512), case.size(32, 1024)
    wide = width * case.random.choice((2, 4))
    x = case.input(rows, width)
    y = case.add("LayerNormalization", x, case.weight(width), case.weight(width), axis=-1)
    y = case.add("Gelu", case.linear(y, rows, width, wide))
    case.add("Add", case.linear(y, rows, wide, width), x)
    case.text = f"{rows}x{width}, inner {wide}"


def _transformer(case: Case) -> None:
    """Self-attention with its projections, and what came in."""
    batch, length, heads = case.random.choice((1, 1, 2, 4)), case.size(8, 384), case.size(2, 12)
    each = case.random.choice((16, 32, 64, 80))
    width, rows = heads * each, batch * length
    split = case.constant(np.array([batch, length, heads, each], np.int64))
    x = case.input(batch, length, width)
    parts = []
    for _ in range(3):
        part = case.add("Reshape", case.linear(x, rows, width, width), split)
        parts.append(case.add("Transpose", part, perm=[0, 2, 1, 3]))
    mixed = case.add("Transpose", _attend(case, *parts, each), perm=[0, 2, 1, 3])
    merged = case.add("Reshape", mixed, case.constant(np.array([batch, length, width], np.int64)))
    case.add("Add", case.linear(merged, rows, width, width), x)
    case.work += 4.0 * rows * length * width
    case.text = f"{batch}x{length}, {heads} heads of {each}"


KINDS: dict[str, Callable[[Case], None]] = {
    "conv": _conv,
    "conv_dilated": _conv_dilated,
    "conv_grouped": _conv_grouped,
    "conv_depthwise": _conv_depthwise,
    "conv_transposed": _conv_transposed,
    "pool": _pool,
    "linear": _linear,
    "linear_open": _linear_open,
    "matmul": _matmul,
    "matmul_batched": _matmul_batched,
    "attention": _attention,
    "softmax": _softmax,
    "norm": _norm,
    "elementwise": _elementwise,
    "reduce": _reduce,
    "movement": _movement,
    "resize": _resize,
    "embedding": _embedding,
    "residual": _residual,
    "inverted": _inverted,
    "mlp": _mlp,
    "transformer": _transformer,
}


def draw(kind: str, seed: int, number: int) -> Case:
    """A case of a kind: the same for the same seed and number."""
    random = Random(f"{kind} {seed} {number}")
    while True:
        case = Case(kind, random)
        KINDS[kind](case)
        if case.within_bounds():
            return case


def draw_cases(seed: int, count: int, kinds: list[str] | None = None) -> list[Case]:
    """So many cases, the kinds in turn."""
    names = kinds or list(KINDS)
    return [draw(names[n % len(names)], seed, n // len(names)) for n in range(count)]
