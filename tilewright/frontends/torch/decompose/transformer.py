"""Layers of transformers that torch keeps whole where no gradients are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

# How torch says what a mask is over: queries and keys, keys of each batch, or all of it.
_OF_SCORES, _OF_KEYS = 0, 1


def _excluded(mask: Tensor, mask_type: int | None, rank: int) -> Tensor:
    """A mask that broadcasts against scores `[batch, heads, queries, keys]`."""
    if mask_type == _OF_KEYS:
        return mask.reshape(mask.shape[0], 1, 1, mask.shape[1])
    return mask if mask.dim() == rank else mask.reshape([1] * (rank - mask.dim()) + [*mask.shape])


def _heads(x: Tensor, count: int) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def _projected(inputs: tuple[Tensor, ...], weight: Tensor, bias: Tensor) -> list[Tensor]:
    """Queries, keys and values: by one product where they are of the same input."""
    if all(x is inputs[0] for x in inputs):
        return list(F.linear(inputs[0], weight, bias).chunk(3, -1))
    rows = zip(inputs, weight.chunk(3), bias.chunk(3), strict=True)
    return [F.linear(x, w, b) for x, w, b in rows]


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Projections, attention and a last projection; a mask is true where a key is left out."""
    parts = _projected((query, key, value), qkv_weight, qkv_bias)
    q, k, v = (_heads(x, num_head) for x in parts)
    excluded = None if mask is None else _excluded(mask, mask_type, q.dim())
    weights = None
    if need_weights:
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
        if excluded is not None:
            scores = scores.masked_fill(excluded.to(torch.bool), -math.inf)
        weights = scores.softmax(-1)
        y = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        included = None if excluded is None else excluded.to(torch.bool).logical_not()
        y = F.scaled_dot_product_attention(q, k, v, included)
    joined = y.transpose(1, 2).flatten(2)
    return F.linear(joined, proj_weight, proj_bias), weights


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Attention and two linear layers, each added to its input, with a norm before or behind."""
    norms = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(
            x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed_forward(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    x = src
    for layer, (weight, bias) in zip((attend, feed_forward), norms, strict=True):
        if norm_first:
            x = x + layer(F.layer_norm(x, [embed_dim], weight, bias, eps))
        else:
            x = F.layer_norm(x + layer(x), [embed_dim], weight, bias, eps)
    return x


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten._native_multi_head_attention.default": multi_head_attention,
    "aten._transformer_encoder_layer_fwd.default": encoder_layer,
}
