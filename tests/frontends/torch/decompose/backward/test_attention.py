from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.frontends.torch.eager import check_gradients, ops, random
from tilewright.frontends.torch.decompose.backward.attention import attention_backward


def operands() -> tuple[Tensor, Tensor, Tensor]:
    return random(2, 3, 5, 8), random(2, 3, 7, 8, seed=1), random(2, 3, 7, 8, seed=2)


@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention(scale: float | None) -> None:
    graph = check_gradients(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=scale), *operands()
    )
    assert ops(graph).count("attention") == 2, "forward, and again for what backward reads of it"


def test_causal_attention() -> None:
    def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = k[..., :5, :], v[..., :5, :]
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    check_gradients(causal, *operands())


def test_heads_that_share_keys() -> None:
    given = random(2, 6, 5, 8), random(2, 2, 7, 8, seed=1), random(2, 2, 7, 8, seed=2)
    check_gradients(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), *given
    )


def test_masks() -> None:
    def masked(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, mask)

    hidden = torch.tensor([True] * 4 + [False] * 3).expand(5, 7).clone()
    hidden[2] = False  # sees nothing
    check_gradients(masked, *operands(), hidden)
    check_gradients(masked, *operands(), random(5, 7, seed=3))


def test_what_runs_in_eager_gives_the_same() -> None:
    given = [x.double().requires_grad_() for x in operands()]
    y = F.scaled_dot_product_attention(*given)
    slopes = random(*y.shape, seed=4).double()
    mask = random(5, 7).double()
    found = torch.ops.tilewright.attention_backward(
        slopes, *given, None, False, None, (True, False, True, False)
    )
    theirs = torch.autograd.grad(y, given, slopes)
    torch.testing.assert_close((found[0], found[2]), (theirs[0], theirs[2]))
    assert found[1].numel() == 0
    by_mask = torch.ops.tilewright.attention_backward(
        slopes, *given, mask, False, None, (False, False, False, True)
    )
    assert by_mask[3].shape == mask.shape


def test_dropout_stays_with_torch() -> None:
    operator = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    parts = attention_backward(operator)
    assert parts(*[None] * 6, 0.5, False) is NotImplemented
