"""NonZero and Compress against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.core.errors import ExecutionError
from tilewright.runtime.cpu.executable import Executable

SHAPES = [(3, 4), (), (5, 1, 2), (1,), (0, 3), (6,)]


@pytest.mark.parametrize("shape", SHAPES)
def test_nonzero(shape: tuple[int, ...]) -> None:
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    t = f"float[{dims}]" if shape else "float"
    m = parsed(f"g ({t} x) => (int64[] y, int64[] s) {{ y = NonZero (x) s = Shape (y) }}")
    model = tw.compile(m, threads=2, cache=False)
    assert isinstance(model, Executable), "no stage is needed for it"
    rng = np.random.default_rng(1)
    for share in (0.0, 0.5, 1.0):
        x = np.where(rng.random(shape) < share, rng.standard_normal(shape), 0).astype(np.float32)
        y, s = model(x)
        # NumPy takes a scalar for a row of one; here its position has no numbers.
        expected = np.array(np.nonzero(x)) if shape else np.zeros((0, np.count_nonzero(x)))
        np.testing.assert_array_equal(y, expected)
        assert s.tolist() == list(y.shape)
    model.close()


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_compress(axis: int | None) -> None:
    given = "" if axis is None else f"<axis = {axis}>"
    m = parsed(f"g (float[n, m] x, bool[k] c) => (float[] y) {{ y = Compress {given} (x, c) }}")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with tw.compile(m, threads=1, cache=False) as model:
        for c in ([True, False], [False], [True, True, True]):
            expected = np.compress(c, x, axis)
            np.testing.assert_array_equal(model(x, np.array(c)), expected)
        # Truth values beyond the elements say nothing.
        every = x.reshape(-1) if axis is None else x
        np.testing.assert_array_equal(model(x, np.ones(13, np.bool_)), every)


def test_what_follows_is_in_the_same_function() -> None:
    m = parsed("""
        g (float[n, m] x) => (float[] y) {
            p = NonZero (x)
            rows = Transpose <perm = [1, 0]> (p)
            e = GatherND (x, rows)
            y = Exp (e)
        }
    """)
    x = np.eye(5, 7, dtype=np.float32)
    with tw.compile(m, threads=1, cache=False) as model:
        assert isinstance(model, Executable)
        np.testing.assert_allclose(model(x), np.exp(np.ones(5)), rtol=1e-6)


def test_sizes_that_must_be_equal_are_checked_once_they_are_known() -> None:
    m = parsed("""
        g (float[n] x, bool[n] a, bool[n] b) => (float[] y) {
            u = Compress <axis = 0> (x, a)
            v = Compress <axis = 0> (x, b)
            w = Add (u, v)
            y = Sub (w, x)
        }
    """)
    x = np.arange(4, dtype=np.float32)
    every, some = np.ones(4, np.bool_), np.array([True, True, False, False])
    with tw.compile(m, threads=1, cache=False) as model:
        np.testing.assert_array_equal(model(x, every, every), x)
        for masks in ((some, every), (every, some), (some, some)):
            with pytest.raises(ExecutionError, match="differ"):
                model(x, *masks)
