"""Mixed precision: an f32 model in f16 or bf16, where the precision and the target allow it.

    conv(x, w)       →   cast[f32](y')  with  y' = conv(cast[f16](x), w in f16)
    relu(add(y, b))  →   cast[f32](z')  with  z' = relu(add(y', b in f16))

Products are converted first; their consumers follow as long as the operator is in `FOLLOW_LIST`, so
that values between kernels are f16. All other operators stay f32: those of a wide range (powers,
squares, exponentials, sums) and those without a product before them. `dce` removes casts without
readers. Operators whose formulas round more than once compute in f32 inside. Each product has a
line in the report. A CPU must have f16 vector arithmetic; a GPU multiplies matrices of both types
and accumulates in f32.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulation_chunk
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.passes.context import PassContext, PrecisionNote
from tilewright.passes.conv.winograd import is_shorter_in
from tilewright.passes.precision.bf16_matmuls import RECURRENCES
from tilewright.passes.precision.f16_accumulation import sum_extents
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target

PRODUCTS = ("matmul", "conv")
# Elements moved, chosen or compared.
_MOVED = (
    *("transpose", "reshape", "expand", "tile", "slice", "concat", "pad", "gather", "reverse"),
    *("depth_to_space", "space_to_depth", "resize_nearest", "where", "min", "max", "clip", "relu"),
    *("max_pool", "reduce_max", "reduce_min", "neg", "abs", "trilu", "gather_nd"),
)
# One rounding, or computed in f32 and rounded once.
_COMPUTED = (
    *("add", "sub", "mul", "div", "leaky_relu", "prelu", "elu", "selu", "celu", "sigmoid", "tanh"),
    *("softplus", "softsign", "hard_sigmoid", "hard_swish", "gelu", "mish", "swish", "erf"),
    *("layer_norm", "rms_norm", "softmax", "log_softmax"),
    *("average_pool", "reduce_mean", "resize_linear", "rotary_embedding"),
)
FOLLOW_LIST = frozenset((*_MOVED, *_COMPUTED))
# The least normal number and the greatest.
SMALLEST_NORMAL = {F16: 2.0**-14, BF16: 2.0**-126}
LARGEST_FINITE = {F16: 65504.0, BF16: 255 * 2.0**120}
DTYPES = {"fp16": F16, "bf16": BF16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def to_mixed_precision(graph: Graph, context: PassContext) -> Graph:
    """Compute in f16 or bf16 from the first product on, where the user and the machine allow it."""
    if isinstance(context.target, GpuTarget):
        context.log.precision += slow_products(graph, context.target)
    dtype = _dtype(context)
    if dtype is None:
        return graph
    return rewrite_graph(graph, _Lowering(context.target, dtype, context.log.precision).rule)


def slow_products(graph: Graph, target: GpuTarget) -> list[PrecisionNote]:
    """The products of 16-bit operands that a GPU's tensor cores have no instruction for."""
    found = []
    for n in graph.nodes:
        operands = [graph.types[name] for name in n.inputs[:2]] if n.op in PRODUCTS else []
        types = [t for t in operands if isinstance(t, TensorType)]
        if types and types[0].dtype in NAMES and target.warp_mma(str(types[0].dtype)) is None:
            what = f"{n.op} {' x '.join(map(str, types))}"
            reason = f"this GPU has no instruction for matrices of {types[0].dtype}: CUDA cores"
            found.append(PrecisionNote(n.name, what, "f32", f"{reason} multiply its values as f32"))
    return found


def _dtype(context: PassContext) -> DType | None:
    """The narrow type; bf16 on a processor is that of single products, see `bf16_matmuls`."""
    if context.precision == "bf16" and isinstance(context.target, CpuTarget):
        return None
    return DTYPES.get(context.precision)


class _Lowering:
    """One run of the pass: its notes, and the narrow copies of values."""

    def __init__(self, target: Target, dtype: DType, notes: list[PrecisionNote]) -> None:
        self.target = target
        self.dtype = dtype
        self.notes = notes
        self.born: dict[str, str] = {}
        self.copies: dict[str, str] = {}

    def rule(self, g: Rewriter, n: Node) -> tuple[str, ...] | None:
        """The node in the narrow type, or `None` where it stays as it is."""
        if n.op in PRODUCTS:
            obstacle = self._obstacle(g, n)
            what = f"{n.op} {g.type(n.inputs[0])} x {g.type(n.inputs[1])}"
            reason = obstacle or f"the machine computes in {self.dtype}, long sums in f32"
            chosen = "f32" if obstacle else NAMES[self.dtype]
            self.notes.append(PrecisionNote(n.name, what, chosen, reason))
            return None if obstacle else self._halved(g, n)
        if n.op in RECURRENCES and not isinstance(self.target, CpuTarget):
            return self._recurrence(g, n)
        return self._halved(g, n) if self._follows(g, n) else None

    def _recurrence(self, g: Rewriter, n: Node) -> tuple[str, ...] | None:
        """Steps whose weights are narrow, so that the product with the state is."""
        weights = [name for name in n.inputs[1:3] if name]
        wide = all(_is_wide(g, name) for name in (n.inputs[0], *weights))
        obstacle = "" if wide else "its operands are not f32"
        if any(g.constant_data(name) is None for name in weights):
            obstacle = "its weights are computed"
        what = f"{n.op} {g.type(n.inputs[0])} x {g.type(n.inputs[1])}"
        chosen = "f32" if obstacle else NAMES[self.dtype]
        reason = obstacle or f"the machine multiplies {self.dtype}, states stay in f32"
        self.notes.append(PrecisionNote(n.name, what, chosen, reason))
        if obstacle:
            return None
        low = [self._half(g, name) if name else name for name in n.inputs[1:3]]
        return g.add_many(n.op, n.inputs[0], *low, *n.inputs[3:], attrs=n.attrs)

    def _obstacle(self, g: Rewriter, n: Node) -> str | None:
        """Why a product stays in f32."""
        if isinstance(self.target, CpuTarget) and not self.target.computes_in_f16:
            return "this machine's vectors do not compute in f16"
        if isinstance(self.target, GpuTarget) and self.target.warp_mma(str(self.dtype)) is None:
            return f"this GPU has no instruction for matrices of {self.dtype}"
        if g.type(n.inputs[0]).dtype != F32:
            return f"its operands are {g.type(n.inputs[0]).dtype}"
        return self._vector_obstacle(g, n) if isinstance(self.target, CpuTarget) else None

    def _vector_obstacle(self, g: Rewriter, n: Node) -> str | None:
        """Why it does on a processor."""
        assert isinstance(self.target, CpuTarget)
        if isinstance(n.attrs, ConvAttrs) and accumulation_chunk(sum_extents(g, n)) is None:
            return "its sums cannot be cut into equal parts"
        weights = replace(g.type(n.inputs[1]), dtype=F16)
        if g.constant_data(n.inputs[1]) is not None and is_shorter_in(F32, n, weights, self.target):
            return "in f32 larger tiles of Winograd's method take less time"
        return None

    def _follows(self, g: Rewriter, n: Node) -> bool:
        """Whether a node reads f16 and loses nothing but digits by computing in it."""
        if n.op not in FOLLOW_LIST or not any(i in self.born for i in n.inputs):
            return False
        square = n.op == "mul" and n.inputs[0] == n.inputs[1]
        return not square and all(self._is_kept(g, i) for i in n.inputs if i)

    def _halved(self, g: Rewriter, n: Node) -> tuple[str, ...]:
        inputs = (self._half(g, i) if i and _is_wide(g, i) else i for i in n.inputs)
        halves = g.add_many(n.op, *inputs, attrs=n.attrs)
        self.born.update(
            (old, new) for old, new in zip(n.outputs, halves, strict=True) if self._is_half(g, new)
        )
        return tuple(
            g.add("cast", h, attrs=CastAttrs(F32)) if self._is_half(g, h) else h for h in halves
        )

    def _half(self, g: Rewriter, value: str) -> str:
        """`value` in the narrow type, converted once."""
        known = self.born.get(value) or self.copies.get(value)
        if known is None:
            data = g.constant_data(value)
            known = (
                g.add("cast", value, attrs=CastAttrs(self.dtype))
                if data is None
                else g.constant(rounded(data, self.dtype))
            )
            self.copies[value] = known
        return known

    def _is_half(self, g: Rewriter, value: str) -> bool:
        found = g.types[value]
        return isinstance(found, TensorType) and found.dtype == self.dtype

    def _is_kept(self, g: Rewriter, value: str) -> bool:
        """Whether a scalar constant (a scale, an epsilon) does not underflow in the type."""
        data = g.constant_data(value)
        if data is None or data.size != 1 or not _is_wide(g, value):
            return True
        size = abs(float(data.reshape(-1)[0]))
        return size == 0 or not size < SMALLEST_NORMAL[self.dtype]


def rounded(data: np.ndarray, dtype: DType = F16) -> np.ndarray:
    """Constants in the narrow type; what is finite stays so."""
    most = LARGEST_FINITE[dtype]
    return np.where(np.isfinite(data), np.clip(data, -most, most), data).astype(dtype.numpy)


def _is_wide(g: Rewriter, value: str) -> bool:
    found = g.types[value]
    return isinstance(found, TensorType) and found.dtype == F32
