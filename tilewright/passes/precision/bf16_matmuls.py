"""Matrix products and convolutions in bf16, where the precision allows it and the target gains.

    matmul(x, w)   →   matmul_f32out(cast[bf16](x), w in bf16)
    conv(x, w)     →   matmul_f32out(im2col(cast[bf16](x)), w in bf16)

Weights are rounded at compile time, activations once where they are computed; accumulators and
results are f32. Everything else stays f32: norms, softmax, reductions, residual sums and
transcendental functions. For each product that stays f32 the reason is reported.
"""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TYPICAL_SIZE, TensorType
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.im2col import Im2ColAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.passes.context import PassContext, PrecisionNote
from tilewright.passes.precision.bf16_gemm_cost import ProductShape, is_profitable
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.calibration.cpu import AMX
from tilewright.target.cpu import CpuTarget

PRODUCTS = ("matmul", "conv")
RECURRENCES = ("lstm_steps", "gru_steps", "rnn_steps")
STEP = AMX.depth
"""Elements of a row that a matrix unit takes at once; rows are filled up to whole steps."""
MIN_WORK = 32 * STEP * STEP
"""Products below which the conversion costs more than it saves."""


def bf16_matmuls(graph: Graph, context: PassContext) -> Graph:
    """Let products run in bf16 where the machine gains by it, if the user allows it."""
    target = context.target
    if context.precision != "bf16" or not isinstance(target, CpuTarget):
        return graph
    return rewrite_graph(graph, _Lowering(graph, target, context.log.precision).rule)


class _Lowering:
    """One run of the pass: its notes, and the bf16 copies of values made so far."""

    def __init__(self, graph: Graph, target: CpuTarget, notes: list[PrecisionNote]) -> None:
        self.graph = graph
        self.target = target
        self.notes = notes
        # One row waits for its weights: if they come from memory, their bytes count.
        self.streams = sum(c.data.nbytes for c in graph.constants) > target.l3
        # What is not known of a model's first sizes is how many samples there are: often one.
        types = (v.type for v in graph.inputs if isinstance(v.type, TensorType))
        self.samples = {name for t in types for d in t.shape[:1] for name in free_vars(d)}
        self.copies: dict[str, str] = {}
        self.images: dict[str, str] = {}

    def rule(self, g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
        """A product in bf16, or `None` where it stays as it is."""
        if n.op in RECURRENCES:
            return self._recurrence(g, n)
        if n.op not in PRODUCTS:
            return None
        obstacle = self._obstacle(g, n)
        what = f"{n.op} {g.type(n.inputs[0])} x {g.type(n.inputs[1])}"
        reason = obstacle or f"{self._gain()}, sums in f32"
        precision = "f32" if obstacle else "bf16"
        self.notes.append(PrecisionNote(n.name, what, precision, reason))
        if obstacle:
            return None
        return self._matmul(g, n) if n.op == "matmul" else self._conv(g, n)

    def _gain(self) -> str:
        return {
            "amx": "the machine multiplies tiles of bf16",
            "dot": "the machine multiplies pairs of bf16",
        }.get(self.target.bf16_gemm, "weights of half the size are read in half the time")

    def _obstacle(self, g: Rewriter, n: Node) -> str | None:
        """Why a product stays in f32."""
        weights = g.constant_data(n.inputs[1])
        if g.type(n.inputs[0]).dtype != F32:
            return f"its operands are {g.type(n.inputs[0]).dtype}"
        if weights is None:
            return "both operands are computed"
        shape = _shape_obstacle(n, weights)
        if shape is not None:
            return shape
        columns = weights.shape[-1] if n.op == "matmul" else weights.shape[0]
        return self._speed_obstacle(n, weights.shape, self._rows(n, columns), columns)

    def _speed_obstacle(
        self, n: Node, weights: tuple[int, ...], rows: int, columns: int
    ) -> str | None:
        depth, kernel = prod(weights) // max(1, columns), weights[2:]
        if rows * columns * depth < MIN_WORK:
            return f"{rows * columns * depth} products are too few to pay for the conversion"
        if self.target.bf16_gemm == "amx":
            attrs = n.attrs if isinstance(n.attrs, ConvAttrs) else None
            if rows == 1 and attrs is None and not any(map(free_vars, n.type.shape)):
                return None  # in pairs
            windows = attrs is not None and not _reads_pixels(attrs, kernel)
            shape = ProductShape(rows, columns, depth, self.streams, windows)
            return None if is_profitable(shape, self.target) else "vectors of f32 take no longer"
        if isinstance(n.attrs, ConvAttrs) and not _reads_pixels(n.attrs, kernel):
            return "this machine has no unit for matrices of bf16"
        if self.target.bf16_gemm:
            return None
        if rows > 1:
            return f"this machine multiplies f32 as fast, and {rows} rows share the weights"
        return None if self.streams else "all weights stay in the cache"

    def _recurrence(self, g: Rewriter, n: Node) -> tuple[str, ...] | None:
        """Steps whose weights are bf16: read in half the time, and multiplied in pairs."""
        weights = [g.constant_data(name) if name else None for name in n.inputs[1:3]]
        obstacle = None
        if g.type(n.inputs[0]).dtype != F32:
            obstacle = f"its operands are {g.type(n.inputs[0]).dtype}"
        elif weights[0] is None:
            obstacle = "its weights are computed"
        elif not self.target.bf16_gemm:
            obstacle = "this machine multiplies f32 as fast"
        what = f"{n.op} {g.type(n.inputs[0])} x {g.type(n.inputs[1])}"
        reason = obstacle or "weights of half the size are read in half the time"
        self.notes.append(PrecisionNote(n.name, what, "f32" if obstacle else "bf16", reason))
        if obstacle:
            return None
        named = zip(n.inputs[1:3], weights, strict=True)
        low = [name if w is None else self._constant(g, w) for name, w in named]
        return g.add_many(n.op, n.inputs[0], *low, *n.inputs[3:], attrs=n.attrs)

    def _rows(self, n: Node, columns: int) -> int:
        """How many rows a product's result has; sizes that are not known count as typical."""
        total = 1
        for d in n.type.shape:
            sizes = {v: 1 if v in self.samples else TYPICAL_SIZE for v in free_vars(d)}
            total *= max(1, evaluate(d, sizes))
        return total // max(1, columns)

    def _matmul(self, g: Rewriter, n: Node) -> str:
        weights = g.constant_data(n.inputs[1])
        assert weights is not None
        left = self._lowered(g, n.inputs[0])
        depth = weights.shape[-2]
        missing = -depth % STEP
        if missing and self.target.bf16_gemm == "amx":
            rank = g.type(left).rank
            after = (*(const(0),) * (rank - 1), const(missing))
            left = g.add("pad", left, attrs=PadAttrs((const(0),) * rank, after))
            weights = np.pad(weights, [(0, 0)] * (weights.ndim - 2) + [(0, missing), (0, 0)])
        return g.add("matmul_f32out", left, self._constant(g, weights))

    def _conv(self, g: Rewriter, n: Node) -> str:
        weights = g.constant_data(n.inputs[1])
        attrs = n.attrs
        assert weights is not None
        assert isinstance(attrs, ConvAttrs)
        first = attrs.layout == "channels_first"
        left = self._channels_last(g, n.inputs[0]) if first else self._lowered(g, n.inputs[0])
        filters = np.moveaxis(weights, (0, 1), (-1, -2))
        kernel, channels = weights.shape[2:], weights.shape[1]
        if prod(kernel) > 1 and channels % STEP != 0:
            left, filters, where = _lines(g, left, filters, attrs)
            left = g.add("im2col", left, attrs=where)
        elif not _reads_pixels(attrs, kernel) or channels % STEP != 0:
            length, line = _up(prod(kernel) * channels), _up(kernel[-1] * channels)
            where = Im2ColAttrs(
                attrs.strides, attrs.pads, attrs.dilations, "channels_last", kernel, length, line
            )
            left = g.add("im2col", left, attrs=where)
        matrix = filters.reshape(-1, weights.shape[0])
        matrix = np.pad(matrix, [(0, _up(len(matrix)) - len(matrix)), (0, 0)])
        result = g.add("matmul_f32out", left, self._constant(g, matrix))
        if not first:
            return result
        rank = attrs.rank + 2
        return g.add("transpose", result, attrs=TransposeAttrs((0, rank - 1, *range(1, rank - 1))))

    def _channels_last(self, g: Rewriter, value: str) -> str:
        """`value` in bf16 with the channels innermost, so that windows are whole vectors."""
        if value not in self.images:
            last = (0, *range(2, g.type(value).rank), 1)
            lowered = self._lowered(g, value)
            self.images[value] = g.add("transpose", lowered, attrs=TransposeAttrs(last))
        return self.images[value]

    def _constant(self, g: Rewriter, weights: np.ndarray) -> str:
        return g.constant(weights.astype(ml_dtypes.bfloat16))

    def _lowered(self, g: Rewriter, value: str) -> str:
        """`value` in bf16, converted once; before a change of shape, where its kernel can do it."""
        if value not in self.copies:
            source = g.producer(value)
            if source is not None and get_op(source.op).kind == "view":
                inner = self._lowered(g, source.inputs[0])
                self.copies[value] = g.add(source.op, inner, attrs=source.attrs)
            else:
                self.copies[value] = g.add("cast", value, attrs=CastAttrs(BF16))
        return self.copies[value]


def _lines(
    g: Rewriter, image: str, filters: np.ndarray, attrs: ConvAttrs
) -> tuple[str, np.ndarray, Im2ColAttrs]:
    """An image of few channels, its filters and windows, so that lines of a window are whole steps.

    Pixels and channels become one axis of an image that has its border, along which the taps of a
    line lie side by side.
    """
    *kernel, channels, _ = filters.shape
    rank = g.type(image).rank
    if any(attrs.pads):
        sides = (attrs.before, attrs.after)
        before, after = ((const(0), *map(const, side), const(0)) for side in sides)
        image = g.add("pad", image, attrs=PadAttrs(before, after))
    *shape, across, _ = g.type(image).shape
    flat = (*shape, simplify(across * channels), const(1))
    image = g.add("reshape", image, attrs=ReshapeAttrs(flat))
    taken = kernel[-1] * channels
    line = _up(taken)
    filters = filters.reshape(*kernel[:-1], taken, -1)
    filters = np.pad(filters, [*[(0, 0)] * (rank - 3), (0, line - taken), (0, 0)])
    where = Im2ColAttrs(
        (*attrs.strides[:-1], attrs.strides[-1] * channels),
        (0,) * len(attrs.pads),
        attrs.dilations,
        "channels_last",
        (*kernel[:-1], taken),
        prod(kernel[:-1]) * line,
        line,
    )
    return image, filters, where


def _up(n: int) -> int:
    """The next multiple of a step."""
    return -(-n // STEP) * STEP


def _reads_pixels(attrs: ConvAttrs, kernel: tuple[int, ...]) -> bool:
    """Whether each window is one pixel, and no pixel is left out or added."""
    return prod(kernel) == 1 and max(attrs.strides) == 1 and not any(attrs.pads)


def _shape_obstacle(n: Node, weights: np.ndarray) -> str | None:
    attrs = n.attrs
    if not isinstance(attrs, ConvAttrs):
        return None if weights.ndim == 2 else "its weights are a batch of matrices"
    if attrs.groups != 1:
        return f"{attrs.groups} groups of channels are no product of matrices"
    channels, taps = weights.shape[1], prod(weights.shape[2:])
    if taps > 1 and channels % STEP != 0 and attrs.dilations[-1] != 1:
        return f"windows of {channels} channels that lie apart are not made of whole vectors"
    return None
