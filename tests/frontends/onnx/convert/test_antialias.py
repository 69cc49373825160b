"""Shrinking without aliasing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.one_node import check, imported, results
from tilewright.arith.expr import const
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.onnx.convert.antialias import tables
from tilewright.ops.image.resize import Axis, ResizeAttrs

RNG = np.random.default_rng(23)
X = RNG.standard_normal((1, 2, 9, 7)).astype("f4")
OPTIONS = {"order": ("x", "", "", "sizes"), "antialias": 1, "opset": 19}


@for_each("mode", ["linear", "cubic"])
@for_each("exclude", [0, 1])
@for_each("size", [(4, 3), (9, 2), (3, 9), (1, 1)])
def test_against_the_reference(mode: str, exclude: int, size: tuple[int, int]) -> None:
    sizes = {"sizes": np.array([1, 2, *size])}
    check("Resize", {"x": X}, sizes, mode=mode, exclude_outside=exclude, **OPTIONS)


def test_means_are_kept_and_types() -> None:
    sizes = {"sizes": np.array([1, 2, 3, 7])}
    (found,) = results("Resize", {"x": np.full((1, 2, 9, 7), 5.0)}, sizes, mode="cubic", **OPTIONS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.full((1, 2, 3, 7), 5.0))


def test_dynamic_sizes() -> None:
    dims = {"x": (1, 2, "H", 7)}
    with pytest.raises(UnsupportedError, match="dynamic size"):
        imported(
            "Resize",
            {"x": X},
            {"sizes": np.array([1, 2, 3, 7])},
            dims=dims,
            mode="linear",
            **OPTIONS,
        )


def test_nothing_is_left_of_an_axis() -> None:
    axis = Axis(const(4), const(0), (const(0), const(1)), (0.0, 1.0))
    index, weights = tables(axis, ResizeAttrs((const(0),), ((const(0), const(1)),), "linear"))
    assert index.shape == weights.shape == (0, 1)


@for_each("new", [2**62, 2**40])
def test_tables_beyond_all_memory(new: int) -> None:
    sizes = {"sizes": np.array([1, 2, 3, new])}
    with pytest.raises(UnsupportedError, match=f"a table of {new} x 4 numbers"):
        imported("Resize", {"x": X}, sizes, mode="linear", **OPTIONS)
