from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attention.rotary import RotaryAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.shape.assumptions import assumptions

RNG = np.random.default_rng(13)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def rotate(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, attrs: RotaryAttrs) -> np.ndarray:
    """`x` is `[batch, length, heads, size]`, angles are `[batch, length, size / 2]`."""
    size = attrs.size or x.shape[-1]
    y = x.copy()
    pairs = (
        (slice(0, size, 2), slice(1, size, 2))
        if attrs.interleaved
        else (slice(0, size // 2), slice(size // 2, size))
    )
    a, b = x[..., pairs[0]], x[..., pairs[1]]
    c, s = cos[:, :, None], sin[:, :, None]
    y[..., pairs[0]] = a * c - b * s
    y[..., pairs[1]] = b * c + a * s
    return y


@for_each("interleaved", [False, True])
@for_each("heads_first", [False, True])
@for_each("size", [0, 4])
@for_each("positions", [False, True])
def test_against_numpy(interleaved: bool, heads_first: bool, size: int, positions: bool) -> None:
    attrs = RotaryAttrs(interleaved, heads_first, size)
    x = normal(2, 3, 5, 6)
    half = (size or 6) // 2
    if positions:
        tables = normal(9, half), normal(9, half)
        where = RNG.integers(0, 9, (2, 3))
        cos, sin = (t[where] for t in tables)
        extra = [*tables, where]
    else:
        cos, sin = normal(2, 3, half), normal(2, 3, half)
        extra = [cos, sin]
    given = np.ascontiguousarray(np.moveaxis(x, 1, 2)) if heads_first else x
    found = run_op("rotary_embedding", given, *extra, attrs=attrs)
    found = np.moveaxis(found, 2, 1) if heads_first else found
    np.testing.assert_allclose(found, rotate(x, cos, sin, attrs), rtol=1e-5, atol=1e-6)


def test_symbolic_lengths() -> None:
    x, cos, sin = normal(2, 3, 5, 4), normal(2, 5, 2), normal(2, 5, 2)
    dims = [("B", 3, "S", 4), ("B", "S", 2), ("B", "S", 2)]
    found = run_op("rotary_embedding", x, cos, sin, attrs=RotaryAttrs(), dims=dims)
    np.testing.assert_array_equal(
        found, run_op("rotary_embedding", x, cos, sin, attrs=RotaryAttrs())
    )


@for_each(
    ("ins", "message"),
    [
        ([tensor(F32, 1, 2, 3, 5), *[tensor(F32, 1, 3, 2)] * 2], "even"),
        ([tensor(F32, 1, 2, 3, 4), *[tensor(F32, 1, 3, 4)] * 2], "half the size"),
        ([tensor(F32, 1, 2, 4), *[tensor(F32, 1, 3, 2)] * 2], "do not fit"),
        ([tensor(F32, 1, 2, 3, 4), *[tensor(F32, 9, 2)] * 2], "do not fit"),
    ],
)
def test_refusals(ins: list[TensorType], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op("rotary_embedding").infer(RotaryAttrs(), ins)


def test_a_head_has_the_elements_that_are_rotated() -> None:
    x, angles, attrs = tensor(F32, 1, 2, 3, 2), tensor(F32, 1, 3, 2), RotaryAttrs(size=4)
    with pytest.raises(TypeCheckError, match="less than 4 elements a head"):
        get_op("rotary_embedding").infer(attrs, [x, angles, angles])
    with assumptions() as found:
        get_op("rotary_embedding").infer(attrs, [tensor(F32, 1, 2, 3, Var("D")), angles, angles])
    assert list(found) == [simplify(const(4) <= Var("D"))]


def test_a_table_has_positions() -> None:
    x, table, positions = tensor(F32, 1, 2, 3, 4), tensor(F32, 0, 2), tensor(I64, 1, 3)
    with pytest.raises(TypeCheckError, match="no positions"):
        get_op("rotary_embedding").infer(RotaryAttrs(), [x, table, table, positions])


@for_each(("rows", "wrong"), [(6, 6), (6, -1), (1, 1), (1, -1)])
def test_a_position_that_the_table_does_not_have(rows: int, wrong: int) -> None:
    x, table = np.ones((1, 2, 3, 8), "f4"), np.ones((rows, 4), "f4")
    with pytest.raises(ExecutionError, match=f"index {wrong} is outside a dimension of {rows}"):
        run_op("rotary_embedding", x, table, table, np.array([[0, wrong, 0]]), attrs=RotaryAttrs())
