"""Signals: DFT, STFT and MelWeightMatrix."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, identifier
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.ops.linalg.dft import DftAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.creation import RangeAttrs
from tilewright.ops.tensor.indexing import GatherAttrs

# The most elements of tables that are made while a model is read.
MAX_ELEMENTS = 1 << 24


def _fixed(n: OnnxNode, size: Expr) -> int:
    """The length of a transform, which must be a number."""
    found = as_int(size)
    if found is None:
        raise n.unsupported(f"a transform of length {size}", "fix the dimension")
    return found


def dft(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The axis is an input since version 20, and was an attribute before."""
    x = n.required(0)
    shape = c.type(x).shape
    given = n.only(c.static_ints(n, 2), 2) if n.has_input(2) else -2
    axis = n.int_attr("axis", 1) if n.opset < 20 else given
    axis = normalize_axis("DFT", axis, len(shape))
    inverse, onesided = (bool(n.int_attr(a, 0)) for a in ("inverse", "onesided"))
    own = simplify((shape[axis] - 1) * 2) if inverse and onesided else shape[axis]
    length = n.only(c.static_ints(n, 1), 1) if n.has_input(1) else _fixed(n, own)
    _check_length(n, length)
    return (c.add(n, "dft", x, attrs=DftAttrs(axis, length, inverse, onesided)),)


def _check_length(n: OnnxNode, length: int) -> None:
    """A transform has tables of its length, which are made while the model is compiled."""
    if length > MAX_ELEMENTS:
        raise n.unsupported(f"a transform of {length} elements", f"up to {MAX_ELEMENTS}")


def stft(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Transforms of overlapping frames, each weighted by a window."""
    x, window = n.required(0), n.input(2)
    shape = c.type(x).shape
    if len(shape) == 2:  # real models leave out the axis of real and imaginary parts
        shape = (*shape, const(1))
        x = add_reshape(c, n, x, shape)
    if len(shape) != 3 or (window and c.type(window).rank != 1):
        raise n.invalid(f"{c.type(x)} is not a batch of signals, or its window is no row")
    _, size, parts = shape
    step = n.only(c.static_ints(n, 1), 1)
    if step < 1:
        raise n.invalid(f"frames {step} apart")
    if n.has_input(3):
        length = n.only(c.static_ints(n, 3), 3)
    else:
        length = _fixed(n, c.type(window).shape[0] if window else size)
    _check_length(n, length)
    frames = simplify((size - length) // step + 1)
    first = c.add(n, "range", attrs=RangeAttrs(const(0), const(step), frames))
    inner = c.add(n, "range", attrs=RangeAttrs(const(0), const(1), const(length)))
    places = c.add(n, "add", add_reshape(c, n, first, (frames, const(1))), inner)
    y = c.add(n, "gather", x, places, attrs=GatherAttrs(1, "clip"))
    if window:
        y = c.add(n, "mul", y, add_reshape(c, n, window, (const(length), const(1))))
    onesided = bool(n.int_attr("onesided", 1)) and parts is const(1)
    return (c.add(n, "dft", y, attrs=DftAttrs(2, length, onesided=onesided)),)


def mel_weight_matrix(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Triangles of equal width on the mel scale, one a column."""
    bins, length, rate = (int(c.scalar(n, i)) for i in range(3))
    elements = (bins + 2) * (length // 2 + 1)
    if not (0 <= bins and 0 <= length and elements <= MAX_ELEMENTS and rate):
        raise n.invalid(f"{bins} bins of {length} samples at a rate of {rate}")
    ends = [float(c.scalar(n, i)) for i in (3, 4)]
    if not (length + 1) * ends[1] // rate <= length // 2:
        raise n.invalid(f"{ends[1]} Hz lie beyond the {length // 2 + 1} frequencies")
    if not 0 <= ends[0] <= ends[1]:
        raise n.invalid(f"frequencies from {ends[0]} to {ends[1]} Hz are none")
    low, high = (2595 * np.log10(1 + end / 700) for end in ends)
    mels = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = ((length + 1) * hertz // rate).astype(int)
    place = np.arange(length // 2 + 1)[:, None]
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where(centre > left, (place - left) / (centre - left), place == centre)
        falling = (right - place) / (right - centre)
    weights = np.where((left <= place) & (place <= centre), rising, 0.0)
    weights = np.where((centre <= place) & (place < right), falling, weights)
    dtype = n.dtype_attr("output_datatype", F32)
    return (c.g.constant(weights.astype(dtype.numpy), identifier(n.outputs[0])),)


CONVERTERS: dict[str, Converter] = {
    "DFT": dft,
    "STFT": stft,
    "MelWeightMatrix": mel_weight_matrix,
}
