"""Unique against NumPy, in one native function."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.runtime.cpu.executable import Executable

RNG = np.random.default_rng(8)


def expected(x: np.ndarray, axis: int | None, ordered: bool) -> list[np.ndarray]:
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        values = np.take(values, order, axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return [values, first, inverse, counts]


def check(kind: str, axis: int | None, ordered: bool, *arrays: np.ndarray) -> None:
    given = f"sorted = {int(ordered)}" + ("" if axis is None else f", axis = {axis}")
    dims = ", ".join(f"d{i}" for i in range(arrays[0].ndim))
    m = parsed(f"""
        g ({kind}[{dims}] x) => ({kind}[] y, int64[] first, int64[] inverse, int64[] counts) {{
            y, first, inverse, counts = Unique <{given}> (x)
        }}
    """)
    with tw.compile(m, threads=2, cache=False) as model:
        assert isinstance(model, Executable), "no stage is needed for it"
        for x in arrays:
            for found, wanted in zip(model(x), expected(x, axis, ordered), strict=True):
                np.testing.assert_array_equal(found, wanted)
                assert found.dtype == wanted.dtype


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_rows_and_elements(axis: int | None, ordered: bool) -> None:
    shapes = [(7, 3), (1, 4), (12, 2)]
    check("float", axis, ordered, *(RNG.integers(0, 3, s).astype(np.float32) for s in shapes))


@pytest.mark.parametrize(("kind", "dtype"), [("uint8", np.uint8), ("bool", np.bool_)])
def test_types(kind: str, dtype: type) -> None:
    check(kind, None, True, RNG.integers(0, 4, 20).astype(dtype))


def test_nan_is_one_value_and_nothing_has_none() -> None:
    special = np.array([np.nan, 1, np.nan, -np.inf, 1], np.float32)
    check("float", None, True, special, np.zeros(0, np.float32))


def test_texts() -> None:
    m = parsed("""
        g (string[n] x) => (string[] y, int64[] first, int64[] inverse, int64[] counts) {
            y, first, inverse, counts = Unique <sorted = 0> (x)
        }
    """)
    with tw.compile(m, threads=1, cache=False) as model:
        y, first, inverse, counts = model(np.array(["b", "a", "b", "c"], object))
    assert y.tolist() == ["b", "a", "c"]
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == (
        [0, 1, 3],
        [0, 1, 0, 2],
        [2, 1, 1],
    )
