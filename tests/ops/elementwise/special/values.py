"""Numbers that special functions are tried at, and the comparison with SciPy in f64 and f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.run_op import run_op
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs

RNG = np.random.default_rng(0)
SPECIAL = np.array(
    [0.0, -0.0, 1, 2, 3, 8, 10, -1, -2, np.inf, -np.inf, np.nan, 0.5, -0.5, 1e-300, 1e-10, -1e-10]
)
ALL = np.concatenate([SPECIAL, RNG.normal(size=90) * 5, 10 ** RNG.uniform(-8, 3, 60)])
POSITIVE = np.abs(ALL)
UNIT = np.concatenate([[0, 1, 0.5, np.nan], RNG.uniform(0, 1, 90), 10 ** RNG.uniform(-200, -1, 30)])


def compare(
    op: str,
    right: Callable[..., Any],
    *arrays: np.ndarray,
    attrs: Attrs = NO_ATTRS,
    rtol: float = 1e-13,
    atol: float = 1e-14,
) -> None:
    """In f64, and in f32 to the last bits."""
    with np.errstate(all="ignore"):
        found = run_op(op, *arrays, attrs=attrs)
        np.testing.assert_allclose(found, right(*arrays), rtol=rtol, atol=atol)
        narrow = [x.astype(np.float32) for x in arrays]
        found = run_op(op, *narrow, attrs=attrs)
        wanted = np.asarray(right(*(x.astype(np.float64) for x in narrow))).astype(np.float32)
        np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-37)
