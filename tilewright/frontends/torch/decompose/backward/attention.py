"""Gradients of scaled dot-product attention, which torch has an operator for with every kernel.

Those operators want the result and the logarithms of its sums again. What is written here computes
the weights anew from queries and keys, which is all that has to be kept for it:

    tilewright::attention_backward(dy, q, k, v, mask, causal, scale, wanted) -> dq, dk, dv, dmask
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_Grads = tuple[Tensor, Tensor, Tensor, Tensor]
_LIBRARY = torch.library.Library("tilewright", "FRAGMENT")
_LIBRARY.define(
    "attention_backward(Tensor grad_output, Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask, bool is_causal, float? scale, bool[4] output_mask) -> "
    "(Tensor, Tensor, Tensor, Tensor)"
)


def _in_eager(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    output_mask: Sequence[bool],
) -> _Grads:
    given = [query, key, value, attn_mask]
    leaves: list[Any] = [
        x.detach().requires_grad_(wanted) if x is not None else None
        for x, wanted in zip(given, output_mask, strict=True)
    ]
    gqa = query.shape[-3] != key.shape[-3]
    with torch.enable_grad():
        q, k, v, mask = leaves
        y = F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, scale=scale, enable_gqa=gqa
        )
    found = iter(torch.autograd.grad(y, [x for x in leaves if _asks(x)], grad_output))
    return _grads([next(found) if _asks(x) else query.new_empty(0) for x in leaves])


def _asks(x: Tensor | None) -> bool:
    return x is not None and x.requires_grad


def _fake(
    grad_output: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    output_mask: Sequence[bool],
) -> _Grads:
    pairs = zip((query, key, value, attn_mask), output_mask, strict=True)
    none = query.new_empty(0)
    return _grads([torch.empty_like(x) if x is not None and w else none for x, w in pairs])


def _grads(found: Sequence[Tensor]) -> _Grads:
    q, k, v, mask = found
    return q, k, v, mask


_LIBRARY.impl("attention_backward", _in_eager, "CompositeExplicitAutograd")
torch.library.register_fake("tilewright::attention_backward", _fake, lib=_LIBRARY)


def attention_backward(operator: Any) -> Callable[..., Any]:
    """Of the forward kernel that `operator` belongs to; with dropout it stays as it is."""
    arguments = [a.name for a in operator._schema.arguments]

    def decompose(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(arguments, args, strict=False)) | kwargs
        if given["dropout_p"]:
            return NotImplemented
        mask = given.get("attn_mask", given.get("attn_bias"))
        wanted = given.get("grad_input_mask", (True, True, True, False))
        grads = torch.ops.tilewright.attention_backward(
            given.get("grad_out", given.get("grad_out_")),
            *(given[name] for name in ("query", "key", "value")),
            mask,
            given["is_causal"],
            given.get("scale"),
            [*wanted[:3], wanted[3] and mask is not None],
        )
        return grads[: len(operator._schema.returns)]

    return decompose


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    f"aten._scaled_dot_product_{kernel}_backward.default": attention_backward(
        getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}_backward").default
    )
    for kernel in (
        "flash_attention_for_cpu",
        "flash_attention",
        "efficient_attention",
        "cudnn_attention",
    )
}
