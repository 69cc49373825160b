from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import exprs, run_op
from tilewright.arith.expr import const
from tilewright.core.dtypes import F16, F32, F64, I64, U32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ops.random.philox import RandomAttrs, philox

# Counter and key, and the four words that the generator's authors publish for them.
KNOWN = [
    ((0,) * 6, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 6, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@for_each(("given", "expected"), KNOWN)
def test_the_generator(given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    c0, c1, c2, c3, k0, k1 = (const(word, U32) for word in given)
    words = philox((c0, c1, c2, c3), (k0, k1))
    b = Builder("t")
    outputs = [b.compute(f"y{k}", (1,), lambda _, w=w: w) for k, w in enumerate(words)]
    found = run_program(b.program(*outputs), {}, {})
    assert tuple(found[f"y{k}"][0] for k in range(4)) == expected


@for_each("dtype", [F16, F32, F64])
def test_distributions(dtype: object) -> None:
    shape = exprs(50, 200)
    uniform = run_op("random", attrs=RandomAttrs(shape, dtype, "uniform", -1, 3, key=5))
    assert uniform.min() >= -1
    assert uniform.max() <= 3
    assert abs(uniform.astype("f8").mean() - 1) < 0.05
    assert abs(uniform.astype("f8").std() - 4 / np.sqrt(12)) < 0.05
    normal = run_op("random", attrs=RandomAttrs(shape, dtype, "normal", 2, 0.5, key=5))
    assert np.isfinite(normal).all()
    assert abs(normal.astype("f8").mean() - 2) < 0.02
    assert abs(normal.astype("f8").std() - 0.5) < 0.02


def test_numbers_depend_on_place_and_key_only() -> None:
    def drawn(key: int, *shape: int) -> np.ndarray:
        return run_op("random", attrs=RandomAttrs(exprs(*shape), key=key))

    np.testing.assert_array_equal(drawn(1, 3, 4).reshape(-1), drawn(1, 12))
    assert len(np.unique(np.concatenate([drawn(1, 100), drawn(2, 100)]))) == 200
    assert drawn(1, 0, 3).shape == (0, 3)


def test_types() -> None:
    with pytest.raises(TypeCheckError, match="numbers of type i64"):
        run_op("random", attrs=RandomAttrs(exprs(3), I64))
