"""Attention and the masking of its scores against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BOOL, F32, F64, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attention.attention import AttentionAttrs, MaskAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(12)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def visible(q: int, k: int, offset: int, left: int, right: int) -> np.ndarray:
    distance = np.arange(k)[None] - (np.arange(q)[:, None] + offset)
    return ((left < 0) | (distance >= -left)) & ((right < 0) | (distance <= right))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: Any, **kw: Any) -> np.ndarray:
    """4-d attention in double precision; `bias` is added to the scores."""
    repeat = q.shape[1] // k.shape[1]
    k, v = (np.repeat(t.astype(np.float64), repeat, 1) for t in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * kw.get("scale", q.shape[-1] ** -0.5)
    if cap := kw.get("softcap"):
        scores = np.tanh(scores / cap) * cap
    scores = scores + bias
    peak = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(peak), 0, peak))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total) @ v


def hidden(seen: np.ndarray) -> np.ndarray:
    return np.where(seen, 0, -np.inf)


@for_each(("heads", "kv_heads"), [(4, 4), (4, 2), (6, 1)])
@for_each("causal", [False, True])
@for_each("softcap", [0.0, 2.0])
def test_4d(heads: int, kv_heads: int, causal: bool, softcap: float) -> None:
    q, k, v = normal(2, heads, 5, 8), normal(2, kv_heads, 7, 8), normal(2, kv_heads, 7, 3)
    found, keys, values, _ = run_op(
        "attention", q, k, v, attrs=AttentionAttrs(causal=causal, softcap=softcap)
    )
    bias = hidden(visible(5, 7, 0, -1, 0 if causal else -1))
    expected = attention(q, k, v, bias, softcap=softcap)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(keys, k)
    np.testing.assert_array_equal(values, v)


def test_3d_is_4d_with_the_heads_side_by_side() -> None:
    q, k, v = normal(2, 5, 12), normal(2, 7, 6), normal(2, 7, 4)
    attrs = AttentionAttrs(q_heads=4, kv_heads=2, scale=0.3)

    def split(x: np.ndarray, heads: int) -> np.ndarray:
        return np.moveaxis(x.reshape(*x.shape[:2], heads, -1), 1, 2)

    found, *_ = run_op("attention", q, k, v, attrs=attrs)
    expected = attention(split(q, 4), split(k, 2), split(v, 2), 0, scale=0.3)
    expected = np.moveaxis(expected, 1, 2).reshape(2, 5, -1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_past_and_symbolic_lengths() -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4), normal(1, 2, 3, 4)
    past_k, past_v = normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    now, past = ("B", 2, "S", 4), ("B", 2, "P", 4)
    found, keys, values, scores = run_op(
        "attention",
        *(q, k, v, None, past_k, past_v),
        attrs=AttentionAttrs(causal=True),
        dims=[now, now, now, (), past, past],
    )
    all_k, all_v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    np.testing.assert_array_equal(keys, all_k)
    np.testing.assert_array_equal(values, all_v)
    expected = attention(q, all_k, all_v, hidden(visible(3, 8, 5, -1, 0)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores, q @ np.swapaxes(all_k, 2, 3) / 2, rtol=1e-4, atol=1e-5)


@for_each("shape", [(7,), (5, 7), (3, 5, 7), (2, 1, 5, 7), (2, 3, 1, 7), (5, 4)])
@for_each("kind", [np.bool_, np.float32])
def test_masks(shape: tuple[int, ...], kind: type) -> None:
    q, k, v = normal(2, 3, 5, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8)
    mask = normal(*shape)
    if kind is np.bool_:
        mask = mask > 0
    if shape[-2:] == (5, 7):
        mask[..., 2, :] = False if kind is np.bool_ else -np.inf  # nothing to see for query 2
    bias = hidden(mask) if kind is np.bool_ else mask
    missing = 7 - shape[-1]  # keys that the mask does not reach are hidden
    bias = np.pad(bias, [(0, 0)] * (bias.ndim - 1) + [(0, missing)], constant_values=-np.inf)
    found, *_ = run_op("attention", q, k, v, mask, attrs=AttentionAttrs())
    np.testing.assert_allclose(found, attention(q, k, v, bias), rtol=1e-4, atol=1e-5)


@for_each(("left", "right"), [(2, -1), (-1, 1), (1, 0), (0, 2)])
@for_each("causal", [False, True])
def test_windows(left: int, right: int, causal: bool) -> None:
    q, k, v = normal(1, 2, 6, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4)
    attrs = AttentionAttrs(window_left=left, window_right=right, causal=causal)
    found, *_ = run_op("attention", q, k, v, attrs=attrs)
    bias = hidden(visible(6, 5, 0, left, 0 if causal else right))
    np.testing.assert_allclose(found, attention(q, k, v, bias), rtol=1e-4, atol=1e-5)


@for_each("causal", [False, True])
def test_lengths(causal: bool) -> None:
    q, k, v = normal(3, 2, 4, 4), normal(3, 2, 6, 4), normal(3, 2, 6, 4)
    lengths = np.array([6, 4, 2])  # the last has fewer keys than queries: the first see nothing
    found, *_ = run_op(
        "attention", *(q, k, v, None, None, None, lengths), attrs=AttentionAttrs(causal=causal)
    )
    rows = [visible(4, 6, n - 4, -1, 0 if causal else -1) & (np.arange(6) < n) for n in lengths]
    bias = hidden(np.stack(rows)[:, None])
    np.testing.assert_allclose(found, attention(q, k, v, bias), rtol=1e-4, atol=1e-5)


def test_scores_at_every_step() -> None:
    q, k, v = normal(1, 1, 2, 4), normal(1, 1, 3, 4), normal(1, 1, 3, 4)
    found = {
        kind: run_op(
            "attention", q, k, v, attrs=AttentionAttrs(causal=True, softcap=1, scores=kind)
        )[3]
        for kind in ("raw", "capped", "masked", "softmax")
    }
    raw = q @ np.swapaxes(k, 2, 3) / 2
    np.testing.assert_allclose(found["raw"], raw, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["capped"], np.tanh(raw), rtol=1e-5, atol=1e-6)
    seen = visible(2, 3, 0, -1, 0)
    masked = np.where(seen, np.tanh(raw), -np.inf)
    np.testing.assert_allclose(found["masked"], masked, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["softmax"].sum(-1), np.ones((1, 1, 2)), rtol=1e-5)
    assert not found["softmax"][..., ~seen].any()


def test_softmax_precision() -> None:
    q, k, v = (normal(1, 2, 3, 4).astype(np.float16) for _ in range(3))
    found, *_ = run_op("attention", q, k, v, attrs=AttentionAttrs(precision=F64))
    expected = attention(*(t.astype(np.float64) for t in (q, k, v)), 0)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-3)


def test_shared_heads_are_views() -> None:
    g = GraphBuilder("test")
    q, k, v = (
        g.input(n, tensor(F32, Var("B"), h, Var("S"), 8))
        for n, h in zip("qkv", (6, 2, 2), strict=True)
    )
    get_op("attention").decompose(g, AttentionAttrs(), [q, k, v])
    ops = [n.op for n in g.nodes if n.op != "reshape"]
    assert ops == ["mul", "transpose", "matmul", "softmax", "matmul"]


@for_each(
    ("attrs", "ins", "message"),
    [
        (AttentionAttrs(), [tensor(F32, 1, 2, 3), *[tensor(F32, 1, 1, 2, 3)] * 2], "all have rank"),
        (AttentionAttrs(), [tensor(F32, 1, 2, 6)] * 3, "heads"),
        (AttentionAttrs(), [tensor(F32, 1, 3, 2, 4), *[tensor(F32, 1, 2, 2, 4)] * 2], "3 query"),
        (AttentionAttrs(scores="all"), [tensor(F32, 1, 2, 2, 4)] * 3, "scores"),
        (AttentionAttrs(), [*[tensor(F32, 1, 2, 2, 4)] * 3, None, tensor(F32, 1, 2, 2, 4)], "past"),
    ],
)
def test_refusals(attrs: AttentionAttrs, ins: list[TensorType | None], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op("attention").infer(attrs, ins)


SCORES = tensor(F32, 2, 3, 4, 5)


@for_each(
    ("ins", "message"),
    [
        ([tensor(F32, 4, 5)], "rank 3 or more"),
        ([SCORES, tensor(F64, 4, 5)], "must be bool or f32"),
        ([SCORES, tensor(BOOL, 6, 4, 5)], "broadcast"),
        ([SCORES, None, tensor(F32, 2)], "vector of integers"),
    ],
)
def test_mask_refusals(ins: list[TensorType | None], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op("mask_scores").infer(MaskAttrs(const(0)), ins)
    with pytest.raises(TypeCheckError, match="needs the lengths"):
        get_op("mask_scores").infer(MaskAttrs(const(0), bottom_right=True), [SCORES])
    assert (
        get_op("mask_scores").infer(MaskAttrs(const(0)), [SCORES, None, tensor(I64, 2)]) == SCORES
    )
