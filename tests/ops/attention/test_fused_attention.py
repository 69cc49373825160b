from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.attention.attention_reference import attention, operands
from tests.ops.run_op import run_op
from tilewright.arith.expr import as_int, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.registry import get_op

NAN = float("nan")
INF = float("inf")


def _close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (5, 7), (20, 70), (9, 600)])
def test_scale(queries: int, keys: int) -> None:
    q, k, v = operands((2, 1), queries, keys, 4, 6)
    _close(
        run_op("fused_attention", q, k, v, attrs=FusedAttentionAttrs(scale=0.3)),
        attention(q, k, v, 0.3),
    )


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 0), (20, 70), (17, 64)])
def test_symbolic_lengths(queries: int, keys: int) -> None:
    q, k, v = operands((2,), queries, keys, 4, 3)
    dims = [("B", "I", 4), ("B", "J", 4), ("B", "J", 3)]
    _close(
        run_op("fused_attention", q, k, v, attrs=FusedAttentionAttrs(), dims=dims),
        attention(q, k, v, fully_masked="zero"),
    )


@for_each("shape", [(2, 3, 5, 7), (2, 1, 5, 7), (3, 5, 7), (5, 7), (1, 1, 1, 7)])
@for_each("kind", [bool, np.float32])
def test_masks_broadcast(shape: tuple[int, ...], kind: type) -> None:
    q, k, v = operands((2, 3), 5, 7, 4, 4)
    rng = np.random.default_rng(3)
    mask = rng.random(shape) < 0.6 if kind is bool else rng.standard_normal(shape).astype(kind)
    mask[..., 0] = kind(1)
    _close(
        run_op("fused_attention", q, k, v, mask, attrs=FusedAttentionAttrs()),
        attention(q, k, v, mask=mask),
    )


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (9, 600)])
def test_a_bias_beside_a_mask(last: bool, queries: int, keys: int) -> None:
    q, k, v = operands((2, 3), queries, keys, 4, 4)
    rng = np.random.default_rng(3)
    mask = rng.random((2, 1, 1, keys)) < 0.6
    bias = rng.standard_normal((3, queries, keys)).astype("f4")
    attrs = FusedAttentionAttrs(masked_value=-2.0, bias_last=last)
    found = run_op("fused_attention", q, k, v, mask, None, bias, attrs=attrs)
    scores = q @ np.swapaxes(k, -1, -2)
    chosen = np.where(mask, scores, -2) + bias if last else np.where(mask, scores + bias, -2)
    weights = np.exp(chosen - chosen.max(-1, keepdims=True))
    _close(found, weights / weights.sum(-1, keepdims=True) @ v)


def test_a_hidden_score_may_be_a_number() -> None:
    q, k, v = operands((1,), 4, 6, 4, 4)
    mask = np.zeros((4, 6), bool)
    mask[1:, 2] = True
    found = run_op("fused_attention", q, k, v, mask, attrs=FusedAttentionAttrs(masked_value=-5.0))
    _close(found, attention(q, k, v, mask=mask, hidden=-5.0))


@pytest.mark.parametrize("band", [(0, -1, 0), (3, -1, 0), (0, 2, 1), (-4, -1, 1), (0, 1, -1)])
@pytest.mark.parametrize("keys", [6, 150, 300])
def test_bands(band: tuple[int, int, int], keys: int) -> None:
    q, k, v = operands((1, 2), 40, keys, 4, 4)
    offset, left, right = band
    attrs = FusedAttentionAttrs(
        offset=const(offset), window_left=left, window_right=right, fully_masked="zero"
    )
    _close(
        run_op("fused_attention", q, k, v, attrs=attrs),
        attention(q, k, v, band=band, fully_masked="zero"),
    )


def test_the_number_of_valid_keys() -> None:
    q, k, v = operands((2,), 3, 8, 4, 4)
    lengths = np.array([8, 5], np.int64)
    attrs = FusedAttentionAttrs(window_right=0, bottom_right=True, fully_masked="zero")
    found = run_op("fused_attention", q, k, v, None, lengths, attrs=attrs)
    for n, length in enumerate(lengths):
        part = attention(q[n], k[n, :length], v[n, :length], band=(length - 3, -1, 0))
        _close(found[n], part)


def test_orders_of_dimensions() -> None:
    q, k, v = operands((2, 3), 5, 7, 4, 6)
    attrs = FusedAttentionAttrs(
        q_perm=(0, 2, 1, 3), k_perm=(0, 2, 3, 1), v_perm=(1, 0, 2, 3), y_perm=(0, 2, 1, 3)
    )
    stored = q.transpose(0, 2, 1, 3), k.transpose(0, 3, 1, 2), v.transpose(1, 0, 2, 3)
    found = run_op("fused_attention", *map(np.ascontiguousarray, stored), attrs=attrs)
    _close(found, attention(q, k, v).transpose(0, 2, 1, 3))


def test_heads_may_share_keys() -> None:
    q, _, _ = operands((2, 2, 3), 5, 7, 4, 4)
    _, k, v = operands((2, 2, 1), 5, 7, 4, 4)
    _close(run_op("fused_attention", q, k, v, attrs=FusedAttentionAttrs()), attention(q, k, v))


def test_softcap() -> None:
    q, k, v = operands((1,), 5, 7, 16, 4)
    found = run_op("fused_attention", q, k, v, attrs=FusedAttentionAttrs(scale=0.5, softcap=1.5))
    _close(found, attention(q, k, v, 0.5, 1.5))


@for_each("empty", ["nan", "zero", "finite"])
@for_each("keys", [5, 70])
def test_rows_without_a_finite_peak(empty: str, keys: int) -> None:
    q, k, v = operands((1,), 6, keys, 4, 4)
    mask = np.zeros((6, keys), np.float32)
    mask[1], mask[2, 3], mask[3, 2], mask[4, :4] = -INF, NAN, INF, -INF
    found = run_op("fused_attention", q, k, v, mask, attrs=FusedAttentionAttrs(fully_masked=empty))
    _close(found, attention(q, k, v, mask=mask, fully_masked=empty))


def test_operands_that_do_not_fit() -> None:
    q, k, v = operands((2,), 3, 4, 5, 6)
    for wrong in (
        (q, k[..., :4], v),
        (q, k, v[:, :3]),
        (q[:1], k, v),
        (q, k, v, np.zeros((3, 5), bool)),
        (q, k, v, np.zeros((3, 4), np.int64)),
        (q, k, v, None, None, np.zeros((3, 4), bool)),
        (q, k, v, None, None, np.zeros((3, 5), np.float32)),
        (q[0], k, v),
    ):
        with pytest.raises(TypeCheckError, match="fused_attention"):
            run_op("fused_attention", *wrong, attrs=FusedAttentionAttrs())
    with pytest.raises(TypeCheckError, match="lengths"):
        run_op("fused_attention", q, k, v, attrs=FusedAttentionAttrs(bottom_right=True))


def test_cost() -> None:
    types = [tensor(F32, 2, 3, 4), tensor(F32, 2, 5, 4), tensor(F32, 2, 5, 6)]
    row = get_op("fused_attention")
    out = row.infer(FusedAttentionAttrs(), types)
    assert as_int(row.cost(FusedAttentionAttrs(), types, [out])) == 2 * 3 * 5 * (8 + 12 + 14)


@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (40, 45)])
def test_rounded_operands(queries: int, keys: int) -> None:
    q, k, v = operands((2,), queries, keys, 32, 32)
    found = run_op(
        "fused_attention", q, k, v, attrs=FusedAttentionAttrs(scale=0.2, bf16_operands=True)
    )
    np.testing.assert_allclose(found, attention(q, k, v, 0.2), atol=2e-2)
