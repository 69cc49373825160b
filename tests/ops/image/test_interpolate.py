from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import FALSE, cast, const
from tilewright.core.dtypes import F32, F64, I64, DType
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ops.image.interpolate import Tap, cubic_taps, linear_taps, weighted, whole_tap


def _sampled(kind: str, x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A line sampled at positions whose neighbours are all in it."""
    b = Builder("t")
    line, positions = b.input("x", F64, x.shape), b.input("p", F64, at.shape)

    def element(i):
        p = positions.at(i)
        floor = cast(I64, p)
        part = p - cast(F64, floor)
        taps = linear_taps(floor, part) if kind == "linear" else cubic_taps(floor, part, -0.5)
        return weighted(line, [taps], F64)

    y = b.compute("y", at.shape, element)
    return run_program(b.program(y), {"x": x, "p": at}, {})["y"]


@for_each("kind", ["linear", "cubic"])
def test_straight_lines_are_reproduced(kind: str) -> None:
    at = np.array([1.0, 1.25, 2.5, 3.75, 5.0])
    line = np.arange(8, dtype=np.float64) * 3 - 1
    np.testing.assert_allclose(_sampled(kind, line, at), at * 3 - 1, rtol=1e-14)


def test_keys_cubic_reproduces_parabolas() -> None:
    at = np.array([1.1, 2.6, 4.5])
    np.testing.assert_allclose(_sampled("cubic", np.arange(8.0) ** 2, at), at**2, rtol=1e-13)


def test_single_elements_keep_their_type_and_what_is_not_inside_is_zero() -> None:
    b = Builder("t")
    x = b.input("x", I64, (3, 4))
    y = b.compute(
        "y", (3, 4), lambda i, j: weighted(x, [whole_tap(i, F32), whole_tap(j, F32)], F32)
    )
    outside = Tap(const(2), const(1, F32), FALSE)
    z = b.compute("z", (4,), lambda j: weighted(x, [[outside], whole_tap(j, F32)], F32))
    given = np.arange(12).reshape(3, 4) + 2**60
    found = run_program(b.program(y, z), {"x": given}, {})
    np.testing.assert_array_equal(found["y"], given)
    np.testing.assert_array_equal(found["z"], np.zeros(4))


def test_small_weights_of_a_cubic_are_as_exact_as_large_ones() -> None:
    part = np.array([1e-3, 0.01, 0.5, 0.99], np.float32)

    def weights(dtype: DType) -> np.ndarray:
        b = Builder("t")
        p = b.input("p", dtype, part.shape)
        taps = [
            b.compute(
                f"w{k}", part.shape, lambda i, k=k: cubic_taps(const(0), p.at(i), -0.75)[k].weight
            )
            for k in range(4)
        ]
        found = run_program(b.program(*taps), {"p": part.astype(dtype.numpy)}, {})
        return np.stack([found[t.name] for t in taps])

    np.testing.assert_allclose(weights(F32), weights(F64), rtol=1e-6)
