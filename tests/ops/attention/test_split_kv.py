from __future__ import annotations

import numpy as np
import pytest

from tests.ops.attention.attention_reference import attention, operands
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.split_kv import parts_func

TILE = (16, 16, 3)


def _func(
    queries: int,
    keys: object,
    dtype: DType = F32,
    mask: bool = False,
    tile: tuple[int, ...] = TILE,
    **attrs,
) -> Func:
    ins = [tensor(dtype, 2, queries, 8), tensor(dtype, 2, keys, 8), tensor(dtype, 1, keys, 16)]
    ins += [tensor(F32, queries, keys)] if mask else []
    out = tensor(dtype, 2, queries, 16)
    return parts_func(Problem(FusedAttentionAttrs(**attrs), tuple(ins), out, tile))


def _operands(queries: int, keys: int) -> list[np.ndarray]:
    q, k, v = operands((2,), queries, keys, 8, 16)
    return [q, k, v[:1]]


def _run(func: Func, *arrays: np.ndarray) -> np.ndarray:
    dtype = func.params[0].dtype.numpy
    given = {f"x{n}": a if n == 3 else a.astype(dtype) for n, a in enumerate(arrays)}
    y = np.full((2, arrays[0].shape[1], 16), np.nan, dtype)
    run_func(func, {**given, "y0": y}, {"J": arrays[1].shape[1]})
    return y.astype(np.float32)


@pytest.mark.parametrize("keys", [16, 100, Var("J")])
def test_functions_verify_and_print(keys: object) -> None:
    func = _func(5, keys)
    verify_func(func)
    assert parse_func(print_func(func), "") == func


@pytest.mark.parametrize("keys", [5, 40, 96, 100])
@pytest.mark.parametrize(("dtype", "tolerance"), [(F32, 1e-5), (F16, 2e-3)])
def test_the_result_is_that_of_attention(keys: int, dtype: DType, tolerance: float) -> None:
    q, k, v = (x.astype(dtype.numpy) for x in _operands(5, keys))
    right = attention(q, k, np.repeat(v, 2, 0), 0.5)
    found = _run(_func(5, keys, dtype, scale=0.5), q, k, v)
    np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


def test_lengths_that_only_a_run_gives() -> None:
    q, k, v = _operands(3, 70)
    found = _run(_func(3, Var("J")), q, k, v)
    right = attention(q, k, np.repeat(v, 2, 0))
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_parts_of_which_all_is_hidden_do_not_count() -> None:
    q, k, v = _operands(4, 60)
    mask = np.zeros((4, 60), np.float32)
    mask[:, 16:32] = -np.inf
    mask[1] = -np.inf
    right = attention(q, k, np.repeat(v, 2, 0), mask=mask, fully_masked="zero")
    found = _run(_func(4, 60, mask=True, fully_masked="zero"), q, k, v, mask)
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("empty", ["nan", "zero", "finite"])
def test_bands(empty: str) -> None:
    q, k, v = _operands(4, 40)
    func = _func(4, 40, window_right=0, offset=const(-2), fully_masked=empty)
    right = attention(q, k, np.repeat(v, 2, 0), band=(-2, -1, 0), fully_masked=empty)
    np.testing.assert_allclose(_run(func, q, k, v), right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("offset", [0, 20])
def test_each_block_of_rows_divides_the_keys_that_it_sees(offset: int) -> None:
    q, k, v = _operands(40, 90)
    func = _func(40, 90, window_right=0, offset=const(offset))
    verify_func(func)
    right = attention(q, k, np.repeat(v, 2, 0), band=(offset, -1, 0))
    np.testing.assert_allclose(_run(func, q, k, v), right, rtol=1e-4, atol=1e-5)
    (steps,) = (loop.extent for loop in loops(func.body) if loop.name == "at.keys")
    counts = [evaluate(steps, {"at.rows": n}) for n in range(3)]
    visible = [min(90, 16 * n + 16 + offset) for n in range(3)]
    assert counts == [-(-n // (TILE[1] * TILE[2])) for n in reversed(visible)]
