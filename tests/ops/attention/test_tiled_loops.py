from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.attention.attention_reference import attention, operands
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.tiled_loops import padded, tiled_func

TILE = (16, 16)


def _func(queries: object, keys: object, dtype: DType = F32, mask: bool = False, **attrs) -> Func:
    ins = [tensor(dtype, 1, queries, 8), tensor(dtype, 1, keys, 8), tensor(dtype, 1, keys, 16)]
    ins += [tensor(F32, queries, keys)] if mask else []
    out = tensor(dtype, 1, queries, 16)
    return tiled_func(Problem(FusedAttentionAttrs(**attrs), tuple(ins), out, TILE))


def _run(func: Func, *arrays: np.ndarray) -> np.ndarray:
    dtype = func.params[0].dtype.numpy
    given = {f"x{n}": a if n == 3 else a.astype(dtype) for n, a in enumerate(arrays)}
    y = np.full((1, arrays[0].shape[1], 16), np.nan, dtype)
    run_func(func, {**given, "y0": y}, {"I": arrays[0].shape[1], "J": arrays[1].shape[1]})
    return y.astype(np.float32)


@for_each(("queries", "keys"), [(16, 16), (5, 40), (Var("I"), Var("J"))])
def test_functions_verify_and_print(queries: object, keys: object) -> None:
    func = _func(queries, keys, window_right=0)
    verify_func(func)
    assert parse_func(print_func(func), "") == func


@pytest.mark.parametrize(("dtype", "tolerance"), [(F32, 1e-5), (F16, 2e-3), (BF16, 2e-2)])
def test_the_result_is_that_of_attention(dtype: DType, tolerance: float) -> None:
    q, k, v = (x.astype(dtype.numpy) for x in operands((1,), 5, 20, 8, 16))
    found = _run(_func(5, 20, dtype, scale=0.5), q, k, v)
    np.testing.assert_allclose(found, attention(q, k, v, 0.5), rtol=tolerance, atol=tolerance)


def test_lengths_that_only_a_run_gives() -> None:
    q, k, v = operands((1,), 3, 17, 8, 16)
    found = _run(_func(Var("I"), Var("J")), q, k, v)
    np.testing.assert_allclose(found, attention(q, k, v), rtol=1e-4, atol=1e-5)


def test_what_is_hidden_does_not_count() -> None:
    q, k, v = operands((1,), 4, 20, 8, 16)
    mask = np.zeros((4, 20), np.float32)
    mask[:, 16:] = -np.inf
    mask[1] = -np.inf
    k[:, 17], v[:, 18] = np.inf, 1e30
    with np.errstate(all="ignore"):
        right = attention(q, k[:, :16], v[:, :16], mask=mask[:, :16], fully_masked="zero")
    k[:, 17] = 1
    found = _run(_func(4, 20, mask=True, fully_masked="zero"), q, k, v, mask)
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("empty", ["nan", "zero", "finite"])
def test_rows_that_see_nothing(empty: str) -> None:
    q, k, v = operands((1,), 4, 20, 8, 16)
    func = _func(4, 20, window_right=0, offset=const(-2), fully_masked=empty)
    right = attention(q, k, v, band=(-2, -1, 0), fully_masked=empty)
    assert np.isnan(right[0, 0]).all() == (empty == "nan")
    np.testing.assert_allclose(_run(func, q, k, v), right, rtol=1e-4, atol=1e-5)


def test_keys_that_no_row_sees_are_not_visited() -> None:
    func = _func(64, 64, window_right=0)
    walk = next(loop for loop in loops(func.body) if loop.name == "at.keys")
    assert "at.rows" in str(walk.extent)


def test_operands_are_filled_up() -> None:
    assert [padded(n) for n in (8, 32, 40, 64, 72, 128)] == [32, 32, 64, 64, 128, 128]
