"""Matrix products and convolutions in bf16, where the user allows it and the machine gains by it.

    matmul(x, w)   →   matmul_wide(cast[bf16](x), w in bf16)
    conv(x, w)     →   matmul_wide(windows(cast[bf16](x)), w in bf16)

Weights are rounded when the model is compiled, activations once where they are computed; sums are
formed and given in f32. Everything else stays in f32: norms, softmax, reductions, sums of residuals
and transcendental functions. Each product that is left alone has a reason, which is reported.
"""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np

from tilewright.arith.expr import as_int, const
from tilewright.core.dtypes import BF16, F32
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.ops.conv import ConvAttrs
from tilewright.ops.elementwise import CastAttrs
from tilewright.ops.layout import TransposeAttrs
from tilewright.ops.padding import PadAttrs
from tilewright.ops.table import op_row
from tilewright.ops.windows import WindowsAttrs
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import Target

PRODUCTS = ("matmul", "conv")
STEP = 32
"""Elements of a row that a matrix unit takes at once; rows are filled up to whole steps."""
LEAST_WORK = 32 * STEP * STEP
"""Products below which the conversion costs more than it saves."""
TYPICAL_ROWS = 64


@node
class Decision:
    """In which precision one product runs, and why."""

    name: str
    what: str
    precision: str
    reason: str

    def __str__(self) -> str:
        return f"{self.precision:5} {self.what}  {self.name}: {self.reason}"


def lower_precision(graph: Graph, target: Target) -> tuple[Graph, tuple[Decision, ...]]:
    """Let products run in bf16 where `target` gains by it; what was decided for each."""
    lowering = _Lowering(graph, target)
    return rewrite_graph(graph, lowering.rule), tuple(lowering.decisions)


class _Lowering:
    """One run of the pass: what it decided, and the bf16 copies of values made so far."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.decisions: list[Decision] = []
        # One row waits for its weights: if they come from memory, their bytes count.
        self.streams = sum(c.data.nbytes for c in graph.constants) > target.l3
        self.copies: dict[str, str] = {}
        self.images: dict[str, str] = {}

    def rule(self, g: Rewriter, n: Node) -> str | None:
        """A product in bf16, or `None` where it stays as it is."""
        if n.op not in PRODUCTS:
            return None
        obstacle = self._obstacle(g, n)
        what = f"{n.op} {g.type(n.inputs[0])} x {g.type(n.inputs[1])}"
        reason = obstacle or f"{self._gain()}, sums in f32"
        precision = "f32" if obstacle else "bf16"
        self.decisions.append(Decision(n.name, what, precision, reason))
        if obstacle:
            return None
        return self._matmul(g, n) if n.op == "matmul" else self._conv(g, n)

    def _gain(self) -> str:
        return {
            "tiles": "the machine multiplies tiles of bf16",
            "pairs": "the machine multiplies pairs of bf16",
        }.get(self.target.bf16_products, "weights of half the size are read in half the time")

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
        return self._speed_obstacle(n, weights.shape, _rows(n.type.shape, columns), columns)

    def _speed_obstacle(
        self, n: Node, weights: tuple[int, ...], rows: int, columns: int
    ) -> str | None:
        depth, kernel = prod(weights) // max(1, columns), weights[2:]
        if rows * columns * depth < LEAST_WORK:
            return f"{rows * columns * depth} products are too few to pay for the conversion"
        if self.target.bf16_products == "tiles":
            wasted = 2 * depth <= STEP
            return f"a row of {depth} fills no step of {STEP}" if wasted else None
        if isinstance(n.attrs, ConvAttrs) and not _reads_pixels(n.attrs, kernel):
            return "this machine has no unit for matrices of bf16"
        if self.target.bf16_products:
            return None
        if rows > 1:
            return f"this machine multiplies f32 as fast, and {rows} rows share the weights"
        return None if self.streams else "all weights stay in the cache"

    def _matmul(self, g: Rewriter, n: Node) -> str:
        weights = g.constant_data(n.inputs[1])
        assert weights is not None
        left = self._lowered(g, n.inputs[0])
        depth = weights.shape[-2]
        missing = -depth % STEP
        if missing and self.target.bf16_products == "tiles":
            rank = g.type(left).rank
            after = (*(const(0),) * (rank - 1), const(missing))
            left = g.add("pad", left, attrs=PadAttrs((const(0),) * rank, after))
            weights = np.pad(weights, [(0, 0)] * (weights.ndim - 2) + [(0, missing), (0, 0)])
        return g.add("matmul_wide", left, self._constant(g, weights))

    def _conv(self, g: Rewriter, n: Node) -> str:
        weights = g.constant_data(n.inputs[1])
        attrs = n.attrs
        assert weights is not None
        assert isinstance(attrs, ConvAttrs)
        first = attrs.layout == "channels_first"
        left = self._channels_last(g, n.inputs[0]) if first else self._lowered(g, n.inputs[0])
        filters = np.moveaxis(weights, (0, 1), (-1, -2))
        kernel = weights.shape[2:]
        matrix = filters.reshape(-1, weights.shape[0])
        length = -(-len(matrix) // STEP) * STEP
        if not (_reads_pixels(attrs, kernel) and length == len(matrix)):
            matrix = np.pad(matrix, [(0, length - len(matrix)), (0, 0)])
            where = WindowsAttrs(
                attrs.strides, attrs.pads, attrs.dilations, "channels_last", kernel, length
            )
            left = g.add("windows", left, attrs=where)
        result = g.add("matmul_wide", left, self._constant(g, matrix))
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
            if source is not None and op_row(source.op).kind == "view":
                inner = self._lowered(g, source.inputs[0])
                self.copies[value] = g.add(source.op, inner, attrs=source.attrs)
            else:
                self.copies[value] = g.add("cast", value, attrs=CastAttrs(BF16))
        return self.copies[value]


def _rows(shape: Shape, columns: int) -> int:
    """How many rows the result of a product has; symbolic sizes count as typical."""
    sizes = [as_int(d) for d in shape]
    known = prod(d for d in sizes if d is not None) // max(1, columns)
    return known if None not in sizes else known * TYPICAL_ROWS


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
    if taps > 1 and channels % STEP != 0:
        return f"windows of {channels} channels are not made of whole vectors"
    return None
