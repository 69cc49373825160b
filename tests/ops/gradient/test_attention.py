"""Gradients of attention, its masks and rotary positions against differences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tilewright.arith.expr import const
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.attention.attention import AttentionAttrs, MaskAttrs
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.attention.rotary import RotaryAttrs
from tilewright.ops.interpret import run_graph

RNG = np.random.default_rng(8)


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


Q, K, V = random(1, 4, 3, 2), random(1, 2, 5, 2), random(1, 2, 5, 3)


def test_shared_heads() -> None:
    check_rule("attention", Q, K, V, attrs=AttentionAttrs())


def test_masks() -> None:
    attrs = AttentionAttrs(causal=True, softcap=2.0, scores="softmax")
    check_rule("attention", Q, K, V, random(3, 5), attrs=attrs)
    seen = random(3, 5) > 0
    past = random(1, 2, 2, 2), random(1, 2, 2, 3)
    check_rule("attention", Q, K, V, seen, *past, attrs=AttentionAttrs())


def test_three_dimensions_and_lengths() -> None:
    operands = random(2, 3, 4), random(2, 5, 4), random(2, 5, 6)
    attrs = AttentionAttrs(2, 2, causal=True)
    check_rule("attention", *operands, None, None, None, np.array([3, 4]), attrs=attrs)


@for_each("mask", [(3, 5), (1, 5), (2, 1, 5), (3, 4)])
def test_what_is_hidden_has_no_slope(mask: tuple[int, ...]) -> None:
    _, backward = gradient_graph(
        "mask_scores", (random(2, 3, 5), random(*mask)), MaskAttrs(const(0), -1, 0)
    )
    assert len(backward.outputs) == 2
    dscores, dmask = _run(backward, random(2, 3, 5), random(*mask))
    seen = np.tril(np.ones((3, 5)))
    seen[:, mask[-1] :] = 0
    np.testing.assert_array_equal(dscores, np.broadcast_to(seen, (2, 3, 5)))
    whole = dscores[..., : mask[-1]]
    aligned = (1,) * (3 - len(mask)) + mask
    axes = tuple(d for d, size in enumerate(aligned) if size == 1)
    np.testing.assert_array_equal(dmask, whole.sum(axes, keepdims=True).reshape(mask))


def _run(backward: Graph, *arrays: np.ndarray) -> list[np.ndarray]:
    given = {"x0": arrays[0], "x1": arrays[1], "d0": np.ones_like(arrays[0])}
    return list(run_graph(backward, given).values())


@for_each("heads_first", [False, True])
@for_each("interleaved", [False, True])
def test_rotary(interleaved: bool, heads_first: bool) -> None:
    attrs = RotaryAttrs(interleaved, heads_first, 4)
    check_rule(
        "rotary_embedding", random(2, 3, 3, 6), random(2, 3, 2), random(2, 3, 2), attrs=attrs
    )


def test_rotary_by_positions() -> None:
    places = RNG.integers(0, 9, (2, 4))
    check_rule(
        "rotary_embedding",
        random(2, 3, 4, 6),
        random(9, 3),
        random(9, 3),
        places,
        attrs=RotaryAttrs(),
    )


def test_natively() -> None:
    operands = [np.zeros((2, 2, 7, 4), np.float32)] * 3
    _, backward = gradient_graph("attention", operands, AttentionAttrs(causal=True))
    check_native(backward, random_inputs(backward, {}), scale=4)


def test_what_passes_make() -> None:
    with pytest.raises(UnsupportedError, match="passes make it of products and a softmax"):
        gradient_graph("fused_attention", (Q, Q, Q), FusedAttentionAttrs())
