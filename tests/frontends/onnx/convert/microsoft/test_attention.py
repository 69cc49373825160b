"""Attention in its older forms, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.microsoft.microsoft_node import RNG, check_ms, normal, run_ms
from tilewright.core.errors import Error, TypeCheckError, UnsupportedError

BATCH, LENGTH, HEADS, SIZE = 2, 5, 3, 4
HIDDEN = HEADS * SIZE
X = normal(BATCH, LENGTH, HIDDEN)
PRODUCT = [X, normal(HIDDEN, 3 * HIDDEN), normal(3 * HIDDEN)]
SEEN = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], "i4")
PAIRS = RNG.integers(0, 2, (BATCH, LENGTH, LENGTH)).astype("i4") | np.eye(LENGTH, dtype="i4")


@for_each(
    "rest",
    [
        [],
        [SEEN],
        [np.array([3, 5], "i4")],
        [PAIRS],
        [None, None, normal(BATCH, HEADS, LENGTH, LENGTH)],
    ],
)
@for_each("causal", [0, 1])
def test_attention(rest: list[np.ndarray | None], causal: int) -> None:
    if len(rest) == 1 and rest[0] is PAIRS and causal:
        return  # a query that sees nothing has no weights
    check_ms("Attention", [*PRODUCT, *rest], num_heads=HEADS, unidirectional=causal)


def test_attention_with_a_past_and_other_sizes() -> None:
    past = normal(2, BATCH, HEADS, 6, SIZE)
    check_ms("Attention", [*PRODUCT, None, past], outputs=2, num_heads=HEADS, unidirectional=1)
    inputs = [X, normal(HIDDEN, 24), normal(24)]
    check_ms("Attention", inputs, num_heads=2, qkv_hidden_sizes=[8, 8, 8], scale=0.25)
    with pytest.raises(UnsupportedError, match="a mask"):
        run_ms("Attention", [*PRODUCT, SEEN[:, None, None, :]], num_heads=HEADS)


@for_each("bias", [None, normal(3 * HIDDEN)])
@for_each("mask", [None, np.array([[1] * 5 + [0] * 2, [1] * 7], "i4"), np.array([5, 7], "i4")])
@for_each("scores", [None, normal(1, HEADS, LENGTH, 7)])
def test_multi_head_attention(bias: Any, mask: Any, scores: Any) -> None:
    inputs = [X, normal(BATCH, 7, HIDDEN), normal(BATCH, 7, HIDDEN), bias, mask, scores]
    check_ms("MultiHeadAttention", inputs, num_heads=HEADS)


def test_multi_head_attention_with_a_past() -> None:
    keys, values = normal(BATCH, LENGTH, HIDDEN), normal(BATCH, LENGTH, HIDDEN)
    past = [normal(BATCH, HEADS, 6, SIZE) for _ in range(2)]
    inputs = [X, keys, values, None, None, None, *past]
    check_ms("MultiHeadAttention", inputs, outputs=3, num_heads=HEADS, unidirectional=1)


def test_operands_in_other_layouts() -> None:
    keys, values = normal(BATCH, HEADS, 7, SIZE), normal(BATCH, HEADS, 7, SIZE)
    check_ms("MultiHeadAttention", [X, keys, values], num_heads=HEADS)
    rows = [v.transpose(0, 2, 1, 3) for v in (keys, values)]
    (expected,) = run_ms("MultiHeadAttention", [X, keys, values], num_heads=HEADS)
    (found,) = run_ms("MultiHeadAttention", [X, np.stack(rows, 3)], num_heads=HEADS)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    own = X.reshape(BATCH, LENGTH, HEADS, SIZE)
    (packed,) = run_ms("MultiHeadAttention", [np.stack([own] * 3, 3)], num_heads=HEADS)
    (expected,) = run_ms("MultiHeadAttention", [X, X, X], num_heads=HEADS)
    np.testing.assert_allclose(packed, expected, rtol=1e-6)


GROUPS, WIDE = (4, 2), 16
ANGLES = [np.cos(normal(20, WIDE // 2)), np.sin(normal(20, WIDE // 2))]


@for_each(("past", "length"), [(0, 5), (6, 1)])
@for_each(
    "options",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1},
        {"local_window_size": 2},
        {"softcap": 1.5, "scale": 0.3},
    ],
)
def test_group_query_attention(past: int, length: int, options: dict[str, Any]) -> None:
    heads, kv_heads = GROUPS
    new = [normal(BATCH, length, h * WIDE) for h in (heads, kv_heads, kv_heads)]
    cache = [normal(BATCH, kv_heads, past, WIDE) for _ in range(2)]
    last = np.full(BATCH, past + length - 1, "i4")
    inputs = [*new, *cache, last, np.array(past + length, "i4")]
    inputs += ANGLES if options.get("do_rotary") else []
    options = {**options, "num_heads": heads, "kv_num_heads": kv_heads}
    check_ms("GroupQueryAttention", inputs, outputs=3, constants=(6,), **options)
    packed = [np.concatenate(new, 2), None, None, *inputs[3:]]
    check_ms("GroupQueryAttention", packed, outputs=3, constants=(6,), **options)


def test_group_query_attention_that_is_refused() -> None:
    new = [normal(BATCH, 1, h * WIDE) for h in (4, 2, 2)]
    cache = [normal(BATCH, 2, 6, WIDE) for _ in range(2)]
    inputs = [*new, *cache, np.full(BATCH, 4, "i4"), np.array(5, "i4")]
    options = {"num_heads": 4, "kv_num_heads": 2, "outputs": 3, "constants": (6,)}
    with pytest.raises(UnsupportedError, match="5 keys, of which 7 are given"):
        run_ms("GroupQueryAttention", inputs, **options)
    with pytest.raises(UnsupportedError, match="smooth_softmax"):
        run_ms("GroupQueryAttention", inputs, smooth_softmax=1, **options)


def test_rotary_embedding() -> None:
    positions = RNG.integers(0, 20, (BATCH, LENGTH))
    rows, heads = normal(BATCH, LENGTH, 4 * WIDE), normal(BATCH, 4, LENGTH, WIDE)
    check_ms("RotaryEmbedding", [rows, positions, *ANGLES])
    check_ms("RotaryEmbedding", [heads, positions, *ANGLES], interleaved=1)
    check_ms("RotaryEmbedding", [rows, np.array([3]), *ANGLES])
    partly = {"num_heads": 4, "rotary_embedding_dim": WIDE}
    check_ms("RotaryEmbedding", [normal(BATCH, LENGTH, 8 * WIDE), positions, *ANGLES], **partly)


def test_rotary_embedding_that_is_refused() -> None:
    positions = RNG.integers(0, 20, (BATCH, LENGTH))
    with pytest.raises(TypeCheckError, match=f"less than {WIDE} elements a head"):
        run_ms("RotaryEmbedding", [normal(BATCH, 4, LENGTH, WIDE - 2), positions, *ANGLES])
    rows = normal(BATCH, LENGTH, 4 * WIDE)
    options = {"num_heads": 2, "rotary_embedding_dim": WIDE - 2}
    with pytest.raises(Error, match=f"rotary_embedding_dim is not {WIDE}"):
        run_ms("RotaryEmbedding", [rows, positions, *ANGLES], **options)
