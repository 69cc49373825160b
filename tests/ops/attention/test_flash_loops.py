from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.attention.attention_reference import attention, operands
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import blocks, loops
from tilewright.ir.types import tensor
from tilewright.ops.attention.flash_loops import flash_attention_func
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem


def _func(queries: object, keys: object, **attrs: object) -> Func:
    ins = (tensor(F32, 2, queries, 4), tensor(F32, 2, keys, 4), tensor(F32, 2, keys, 3))
    return flash_attention_func(
        Problem(FusedAttentionAttrs(**attrs), ins, tensor(F32, 2, queries, 3))
    )


def _visits(func: Func, rows: int) -> int:
    keys = next(loop for loop in loops(func.body) if loop.name == "at.keys")
    return evaluate(keys.extent, {"at.rows": rows})


@for_each(("queries", "keys"), [(1, 8), (5, 20), (33, 600), (Var("I"), Var("J"))])
def test_functions_verify_and_print(queries: object, keys: object) -> None:
    func = _func(queries, keys, window_right=0)
    verify_func(func)
    assert parse_func(print_func(func), "") == func


def test_one_block_of_keys_carries_nothing() -> None:
    assert {"m", "l", "o"} & {b.name for b in blocks(_func(8, 600).body)}
    assert not {"m", "l", "o"} & {b.name for b in blocks(_func(8, 100).body)}


def test_keys_that_no_row_sees_are_not_visited() -> None:
    func = _func(512, 512, window_right=0)
    visits = [_visits(func, n) for n in range(512 // 32)]
    assert visits[0] == 1
    assert visits == sorted(visits)
    assert sum(visits) <= len(visits) * visits[-1] * 0.7
    # A band that begins further right sees nothing in some rows, which still get a result.
    assert _visits(_func(512, 512, window_right=0, offset=const(-300)), 0) == 1


def test_few_rows_read_keys_where_they_lie() -> None:
    assert "kt" not in {b.name for b in blocks(_func(1, 100).body)}
    assert "kt" in {b.name for b in blocks(_func(100, 100).body)}


@pytest.mark.parametrize("keys", [7, 130])
def test_what_lies_beyond_the_end_is_not_read(keys: int) -> None:
    q, k, v = operands((2,), 10, keys, 4, 3)
    y = np.full((2, 10, 3), np.nan, np.float32)
    func = _func(Var("I"), Var("J"))
    run_func(func, {"x0": q, "x1": k, "x2": v, "y0": y}, {"I": 10, "J": keys})
    np.testing.assert_allclose(y, attention(q, k, v), rtol=1e-4, atol=1e-5)
