"""Operators of com.microsoft that join several of ONNX's: products, activations, normalization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.frontends.onnx.convert.conv import conv
from tilewright.frontends.onnx.convert.matmul import as_matrices, gemm
from tilewright.frontends.onnx.convert.norm import CONVERTERS as NORM
from tilewright.frontends.onnx.convert.norm import layer_norm, rms_norm
from tilewright.frontends.onnx.convert.sampling import CONVERTERS as SAMPLING
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.activation import AlphaAttrs, GeluAttrs, HardSigmoidAttrs
from tilewright.ops.reduction.norm import LayerNormAttrs, RmsNormAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs, RangeAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs

DOMAIN = "com.microsoft"


def _sum(c: OnnxContext, n: OnnxNode, *names: str) -> NodeValue:
    """The sum of the values that are there."""
    first, *rest = (traced(c, n, name) for name in names if name)
    for other in rest:
        first = first + other
    return first


def gelu_of_sum(tanh: bool) -> Converter:
    """The activation of an input and its bias."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        return (_sum(c, n, n.required(0), n.input(1)).apply("gelu", attrs=GeluAttrs(tanh)).name,)

    return convert


# An activation's attributes, of the list of numbers that a fused operator gives for them.
_ACTIVATIONS: dict[str, tuple[str, Callable[[tuple[float, ...]], Attrs]]] = {
    "Relu": ("relu", lambda p: Attrs()),
    "Tanh": ("tanh", lambda p: Attrs()),
    "Sigmoid": ("sigmoid", lambda p: Attrs()),
    "HardSwish": ("hard_swish", lambda p: Attrs()),
    "LeakyRelu": ("leaky_relu", lambda p: AlphaAttrs(p[0] if p else 0.01)),
    "HardSigmoid": ("hard_sigmoid", lambda p: HardSigmoidAttrs(*(p or (0.2, 0.5)))),
}


def _activated(x: NodeValue, name: str, numbers: tuple[float, ...]) -> NodeValue:
    if not name:
        return x
    if name == "Clip":
        low, high = numbers
        return x.apply("clip", low, high)
    if name not in _ACTIVATIONS:
        known = ", ".join((*_ACTIVATIONS, "Clip"))
        raise x.g.n.unsupported(f"activation {name}", f"supported: {known}")
    op, attrs = _ACTIVATIONS[name]
    return x.apply(op, attrs=attrs(numbers))


def fused_conv(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A convolution, a tensor added to it, and an activation."""
    y = _sum(c, n, *conv(c, n), n.input(3))
    return (
        _activated(y, n.str_attr("activation", ""), n.floats_attr("activation_params", ())).name,
    )


def fused_gemm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A product of matrices and an activation."""
    numbers = [n.float_attr(a) for a in _GEMM_PARAMETERS if n.has_attr(a)]
    y = traced(c, n, gemm(c, n)[0])
    return (_activated(y, n.str_attr("activation", ""), tuple(numbers)).name,)


_GEMM_PARAMETERS = ("activation_alpha", "activation_beta", "activation_gamma")


def fused_matmul(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`alpha` times a product, operands maybe transposed."""
    operands = [n.required(0), n.required(1)]
    for i, side in enumerate("AB"):
        rank = c.type(operands[i]).rank
        order = list(range(rank))
        if n.int_attr(f"transBatch{side}", 0) and rank > 2:  # the first axis goes before the last
            order.insert(rank - 2, order.pop(0))
        if n.int_attr(f"trans{side}", 0) and rank > 1:
            order[-2:] = order[:-3:-1]
        if order != sorted(order):
            attrs = TransposeAttrs(tuple(order))
            operands[i] = c.add(n, "transpose", operands[i], attrs=attrs)
    x, w = operands
    y = traced(c, n, as_matrices(c, n, x, w, lambda a, b: c.add(n, "matmul", a, b)))
    alpha = n.float_attr("alpha", 1.0)
    return ((y * alpha if alpha != 1 else y).name,)


def fused_matmul_activation(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The same, and an activation."""
    numbers = [n.float_attr(a) for a in _GEMM_PARAMETERS if n.has_attr(a)]
    y = traced(c, n, fused_matmul(c, n)[0])
    return (_activated(y, n.str_attr("activation"), tuple(numbers)).name,)


def gemm_fast_gelu(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A product, a bias, and the approximation of the activation by a tangent."""
    y = as_matrices(c, n, n.required(0), n.required(1), lambda a, b: c.add(n, "matmul", a, b))
    return (_sum(c, n, y, n.input(2)).apply("gelu", attrs=GeluAttrs(tanh=True)).name,)


def bias_add(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A bias and a residual added."""
    return (_sum(c, n, n.required(0), n.required(1), n.required(2)).name,)


def bias_split_gelu(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A bias added; then the first half of a row, times the activation of the second."""
    total = _sum(c, n, n.required(0), n.required(1)).name
    *_, size = c.shape(n, total, 3)
    middle = simplify(size // 2)
    left, right = (
        traced(c, n, add_slice(c, total, {2: (start, stop, 1)}, "half"))
        for start, stop in ((const(0), middle), (middle, size))
    )
    return ((left * right.apply("gelu", attrs=GeluAttrs(tanh=False))).name,)


def bias_softmax(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Softmax of a sum, along all axes from `axis` on as one."""
    total = _sum(c, n, n.required(0), n.required(1)).name
    return NORM["Softmax"](c, replace(n, inputs=(total,), opset=1))


def skip_layer_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A residual and a bias added, then normalized; the fourth output is the sum."""
    total = _sum(c, n, n.required(0), n.required(1), n.input(4))
    scale = [n.required(2), *([n.input(3)] if n.has_input(3) else [])]
    stats = n.wants(1) or n.wants(2)
    attrs = LayerNormAttrs(-1, n.float_attr("epsilon", 1e-12), stats)
    found = c.g.add_many("layer_norm", total.name, *scale, attrs=attrs, loc=n.loc)
    return (*found, *(("", "") if not stats else ()), total.name)


def skip_rms_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A residual and a bias added, then divided by the root of the mean square."""
    if n.wants(1) or n.wants(2):
        raise n.unsupported("statistics as outputs", "the result and the sum are supported")
    total = _sum(c, n, n.required(0), n.required(1), n.input(3))
    attrs = RmsNormAttrs(-1, n.float_attr("epsilon", 1e-12))
    y = c.add(n, "rms_norm", total.name, n.required(2), attrs=attrs)
    return y, "", "", total.name


def embed_layer_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Embeddings of words, positions and segments added and normalized, and the masks' sums."""
    ids = n.required(0)
    positions = n.input(8) or places(c, n, c.shape(n, ids, 2)[1])
    rows = [(n.required(2), ids), (n.required(3), positions), (n.input(4), n.input(1))]
    found = [c.add(n, "gather", t, i, attrs=GatherAttrs(0)) for t, i in rows if t]
    return embedded(c, n, found, (n.required(5), n.required(6)), n.input(7))


def embedded(
    c: OnnxContext, n: OnnxNode, rows: list[str], parameters: tuple[str, str], mask: str
) -> tuple[str, ...]:
    """Embeddings added and normalized, the masks' sums, and the embeddings' sum."""
    total = _sum(c, n, *rows)
    attrs = LayerNormAttrs(-1, n.float_attr("epsilon", 1e-12))
    y = c.add(n, "layer_norm", total.name, *parameters, attrs=attrs)
    if mask:
        kept = c.cast(n, mask, I32)
        count = c.add(n, "reduce_sum", kept, attrs=ReduceAttrs((1,), keepdims=False))
    else:
        batch = c.shape(n, n.required(0), 2)[0]
        count = c.add(n, "full", attrs=FullAttrs((batch,), 0, I32))
    return y, count, total.name


def places(c: OnnxContext, n: OnnxNode, length: Expr) -> str:
    """The positions 0, 1, ... of a sequence."""
    return c.add(n, "range", attrs=RangeAttrs(const(0), const(1), length))


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::Gelu": gelu_of_sum(tanh=False),
    f"{DOMAIN}::BiasGelu": gelu_of_sum(tanh=False),
    f"{DOMAIN}::FastGelu": gelu_of_sum(tanh=True),
    f"{DOMAIN}::QuickGelu": simple("swish", lambda n: AlphaAttrs(n.float_attr("alpha", 1.702))),
    f"{DOMAIN}::FusedConv": fused_conv,
    f"{DOMAIN}::FusedGemm": fused_gemm,
    f"{DOMAIN}::FusedMatMul": fused_matmul,
    f"{DOMAIN}::TransposeMatMul": fused_matmul,
    f"{DOMAIN}::FusedMatMulActivation": fused_matmul_activation,
    f"{DOMAIN}::GemmFastGelu": gemm_fast_gelu,
    f"{DOMAIN}::BiasAdd": bias_add,
    f"{DOMAIN}::BiasSplitGelu": bias_split_gelu,
    f"{DOMAIN}::BiasSoftmax": bias_softmax,
    f"{DOMAIN}::GridSample": SAMPLING["GridSample"],
    f"{DOMAIN}::LayerNormalization": layer_norm,
    f"{DOMAIN}::SimplifiedLayerNormalization": simple("rms_norm", rms_norm),
    "SimplifiedLayerNormalization": simple("rms_norm", rms_norm),
    f"{DOMAIN}::SkipLayerNormalization": skip_layer_norm,
    f"{DOMAIN}::SkipSimplifiedLayerNormalization": skip_rms_norm,
    f"{DOMAIN}::EmbedLayerNormalization": embed_layer_norm,
}
