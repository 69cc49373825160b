from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F16, F32
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attention.problem import (
    KEY_STEP,
    ROW_STEP,
    FusedAttentionAttrs,
    Problem,
    permuted,
)


def _problem(queries: object, keys: object, **attrs: object) -> Problem:
    ins = (tensor(F32, 2, queries, 8), tensor(F32, 2, keys, 8), tensor(F32, 2, keys, 4))
    return Problem(FusedAttentionAttrs(**attrs), ins, tensor(F32, 2, queries, 4))


@for_each("rows", [8, 31, 50, 128, 197, 1000])
def test_little_is_computed_beyond_the_last_row(rows: int) -> None:
    block = _problem(rows, 8).row_block
    assert block % ROW_STEP == 0
    assert -(-rows // block) * block < rows * 1.15 + ROW_STEP


def test_few_rows_are_one_block() -> None:
    assert [_problem(n, 8).row_block for n in (1, 5, 7)] == [1, 5, 7]
    assert _problem(Var("N"), 8).row_block % ROW_STEP == 0


@for_each("keys", [1, 16, 197, 512, 513, 5000])
def test_blocks_of_keys_are_alike(keys: int) -> None:
    block = _problem(8, keys).key_block
    blocks = -(-keys // block)
    assert block % KEY_STEP == 0
    assert blocks * block - keys < KEY_STEP * blocks
    assert block <= 512


def test_a_band_has_smaller_blocks() -> None:
    assert _problem(512, 512, window_right=0).key_block < _problem(512, 512).key_block


def test_copies_are_made_for_many_rows() -> None:
    assert not _problem(1, 100).packs
    assert _problem(64, 100).packs
    assert _problem(Var("N"), 100).packs


def test_orders() -> None:
    stored = (tensor(F32, 2, 5, 3, 8), tensor(F32, 2, 8, 3, 7), tensor(F32, 2, 3, 7, 4))
    attrs = FusedAttentionAttrs(q_perm=(0, 2, 1, 3), k_perm=(0, 2, 3, 1))
    p = Problem(attrs, stored, tensor(F32, 2, 3, 5, 4))
    assert [str(d) for d in p.q] == ["2", "3", "5", "8"]
    assert [str(d) for d in p.k] == ["2", "3", "7", "8"]
    assert p.v == stored[2].shape
    index = tuple(map(Var, "bhjd"))
    assert p.stored("k", index) == tuple(map(Var, "bdhj"))
    assert p.stored("v", index) == index
    assert permuted((const(1), const(2)), (1, 0)) == (const(2), const(1))


def test_sums_of_narrow_floats_are_wider() -> None:
    narrow = TensorType(F16, (const(1), const(1)))
    assert Problem(FusedAttentionAttrs(), (narrow,) * 3, narrow).dtype == F32
