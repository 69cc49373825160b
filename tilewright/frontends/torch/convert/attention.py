"""Scaled dot-product attention, kept as one operator."""

from __future__ import annotations

from tilewright.arith.expr import const
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.ops.attention.attention import AttentionAttrs


def attention(c: TorchContext, n: AtenCall) -> Result:
    """Softmax of scaled products; heads of queries may share those of keys and values."""
    if n.get("dropout_p", 0.0):
        raise n.unsupported("dropout", "call module.eval() first")
    mask = n.get("attn_mask", n.get("attn_bias"))
    shape = c.type(n["query"]).shape
    if len(shape) not in (3, 4):
        raise n.unsupported(f"operands of rank {len(shape)}", "rank 3 or 4")
    parts = [_with_heads(c, n, n[name]) for name in ("query", "key", "value")]
    scale = n["scale"]
    attrs = AttentionAttrs(
        causal=bool(n["is_causal"]), scale=None if scale is None else float(scale)
    )
    given = [*parts, *([_mask(c, n, mask, len(shape))] if mask is not None else [])]
    names = (n.name, "keys", "values", "scores")
    y = c.g.add_many("attention", *given, attrs=attrs, names=names, loc=n.loc)[0]
    y = c.reshape(n, y, n.type.shape) if len(shape) == 3 else y
    return y if len(n.results) == 1 else (y, *(None,) * (len(n.results) - 1))


def _with_heads(c: TorchContext, n: AtenCall, x: str) -> str:
    """A value of rank 4: one head where there is no axis for them."""
    shape = c.type(x).shape
    return x if len(shape) == 4 else c.reshape(n, x, (shape[0], const(1), *shape[1:]))


def _mask(c: TorchContext, n: AtenCall, mask: ValueName, rank: int) -> str:
    shape = c.type(mask).shape
    if rank == 3 and len(shape) == 3:
        return c.reshape(n, mask, (shape[0], const(1), *shape[1:]))
    return mask


CONVERTERS: dict[str, Converter] = {
    "aten.scaled_dot_product_attention": attention,
    "aten._scaled_dot_product_flash_attention_for_cpu": attention,
    **{
        f"aten._scaled_dot_product_{kernel}_attention": attention
        for kernel in ("flash", "efficient", "cudnn")
    },
}
