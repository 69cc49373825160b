"""Attention and rotary position embedding."""

from __future__ import annotations

from tilewright.arith.expr import const
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.ops.attention.attention import SCORES, AttentionAttrs
from tilewright.ops.attention.rotary import RotaryAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs


def attention(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Attention with the cache inside or outside of it."""
    mode = n.int_attr("qk_matmul_output_mode", 0)
    if not 0 <= mode < len(SCORES):
        raise n.invalid(f"qk_matmul_output_mode is {mode}", "use 0 to 3")
    if n.has_input(6) and n.has_input(4):
        raise n.invalid("nonpad_kv_seqlen cannot be combined with past keys and values")
    precision = n.int_attr("softmax_precision", 0)
    attrs = AttentionAttrs(
        n.int_attr("q_num_heads", 0),
        n.int_attr("kv_num_heads", 0),
        bool(n.int_attr("is_causal", 0)),
        n.float_attr("scale") if n.has_attr("scale") else None,
        n.float_attr("softcap", 0.0),
        n.int_attr("left_window_size", -1),
        n.int_attr("right_window_size", -1),
        SCORES[mode],
        onnx_dtype(precision) if precision else None,
    )
    for index in range(3):
        n.required(index)
    return c.add_many(n, "attention", *n.inputs, attrs=attrs)


def rotary_embedding(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """3-d inputs hold the heads of a position side by side, 4-d ones have them in front."""
    x = n.required(0)
    shape = c.type(x).shape
    flat = len(shape) == 3
    if flat:
        heads = n.int_attr("num_heads", 0)
        if heads < 1:
            raise n.invalid("a 3-d input needs the attribute num_heads")
        split = (shape[0], shape[1], const(heads), shape[2] // heads)
        x = c.add(n, "reshape", x, attrs=ReshapeAttrs(split))
    attrs = RotaryAttrs(
        bool(n.int_attr("interleaved", 0)), not flat, n.int_attr("rotary_embedding_dim", 0)
    )
    rest = [n.required(1), n.required(2), *([n.input(3)] if n.has_input(3) else [])]
    y = c.add(n, "rotary_embedding", x, *rest, attrs=attrs)
    return (c.add(n, "reshape", y, attrs=ReshapeAttrs(shape)) if flat else y,)


CONVERTERS = {"Attention": attention, "RotaryEmbedding": rotary_embedding}
