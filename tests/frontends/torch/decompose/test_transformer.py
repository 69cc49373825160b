from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, ops, random

X, Y = random(2, 5, 12), random(2, 5, 12, seed=1)
WEIGHTS = (random(36, 12), random(36), random(12, 12), random(12))
Pick = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


def check_attention(pick: Pick, *mask: Tensor, need_weights: bool = True, **options: Any) -> None:
    """Queries, keys and values are picked out of two inputs."""

    def attend(x: Tensor, y: Tensor, *rest: Tensor) -> Any:
        weights, given = rest[:4], rest[4:] or (None,)
        found = torch.ops.aten._native_multi_head_attention(
            *pick(x, y), 12, 3, *weights, *given, need_weights, **options
        )
        return tuple(found) if need_weights else found[0]

    check(attend, X, Y, *WEIGHTS, *mask, atol=1e-5)


def itself(x: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x, x, x


def test_attention_with_weights() -> None:
    check_attention(itself)
    check_attention(itself, average_attn_weights=False)
    check_attention(itself, need_weights=False)
    check_attention(lambda x, y: (x, y, y))


def test_masks() -> None:
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    keys = torch.zeros(2, 5, dtype=torch.bool)
    keys[1, 3:] = True
    whole = integers(0, 2, 2, 3, 5, 5) > 0
    whole[..., 0] = False
    for need_weights in (False, True):
        check_attention(itself, causal, need_weights=need_weights, mask_type=0)
        check_attention(itself, keys, need_weights=need_weights, mask_type=1)
        check_attention(itself, whole, need_weights=need_weights, mask_type=2)


@for_each("norm_first", [False, True])
def test_layers(norm_first: bool) -> None:
    torch.manual_seed(3)
    for activation in ("relu", "gelu"):
        layer = nn.TransformerEncoderLayer(
            12, 3, 20, activation=activation, batch_first=True, norm_first=norm_first
        ).eval()
        layer.requires_grad_(False)
        assert "attention" in ops(check(layer, X, atol=1e-5))
        check(layer, X, nn.Transformer.generate_square_subsequent_mask(5).isinf(), atol=1e-5)
