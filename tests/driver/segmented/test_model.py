"""Models that are compiled while they run, against NumPy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import (
    AXES,
    BRANCHES,
    GROWING,
    RESHAPED,
    SEQUENCE,
    SQUEEZED,
    SQUEEZED_BRANCH,
    TEXTS,
    parsed,
)
from tilewright.core.errors import ExecutionError, UnsupportedError
from tilewright.driver.segmented.model import SegmentedModel

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def segmented(model: onnx.ModelProto) -> SegmentedModel:
    made = tw.compile(model, threads=1, cache=False)
    assert isinstance(made, SegmentedModel)
    return made


def compilations(model: SegmentedModel) -> int:
    return int(model.explain().split(" ", 1)[0])


def test_axes_that_are_an_input() -> None:
    with segmented(AXES) as model:
        for axes in ([0], [1], [0, 1], [-1]):
            expected = np.maximum(X.sum(axis=tuple(axes)), 0)
            np.testing.assert_allclose(model(X, np.array(axes)), expected, rtol=1e-6)
        np.testing.assert_allclose(model(X.T, np.array([0])), np.maximum(X.T.sum(0), 0))
        assert compilations(model) == 4, "another size needs no further segment"


def test_a_shape_that_is_computed() -> None:
    with segmented(RESHAPED) as model:
        for parts in ([3, 1], [1, 3]):
            y = model(X.reshape(-1), np.array(parts))
            expected = -np.exp(X).reshape([2 * size for size in parts])
            np.testing.assert_allclose(y, expected, rtol=1e-6)
        with pytest.raises(tw.Error, match="reshape"):
            model(X.reshape(-1), np.array([1, 1]))


def test_squeeze_without_axes_drops_what_is_one_at_run_time() -> None:
    with segmented(SQUEEZED) as model:
        for n, m in ((3, 4), (1, 4), (3, 1), (1, 1), (5, 2), (2, 1), (2, 3)):
            x = np.arange(n * m, dtype=np.float32).reshape(n, 1, m)
            squeezed, rest = model(x)
            np.testing.assert_array_equal(squeezed, -x.squeeze(), strict=True)
            # without its first row two rows are one, which no size of an input says
            np.testing.assert_array_equal(rest, x[1:].squeeze(), strict=True)


def test_squeeze_without_axes_in_a_branch() -> None:
    with segmented(SQUEEZED_BRANCH) as model:
        for n in (1, 3):
            x = np.ones((n, 4), np.float32)
            np.testing.assert_array_equal(model(x, np.array(True)), x.squeeze().sum())
            np.testing.assert_array_equal(model(x, np.array(False)), 0)


def test_squeeze_without_axes_of_known_sizes_is_compiled_whole() -> None:
    model = tw.compile(SQUEEZED, dims={"N": 3, "M": 1}, threads=1, cache=False)
    with model:
        assert not isinstance(model, SegmentedModel)
        assert [y.shape for y in model(np.ones((3, 1, 1), np.float32))] == [(3,), (2,)]


def test_sequences_between_stages() -> None:
    with segmented(SEQUENCE) as model:
        y, length = model(X)
        np.testing.assert_allclose(y, np.sqrt(np.abs(X.reshape(1, -1))), rtol=1e-6)
        assert length == 3


def test_a_chain_of_sequences_is_one_stage() -> None:
    """Stages after one another would be nested deeper than functions may call."""
    chain = "\n".join(f"s{i + 1} = Identity (s{i})" for i in range(2000))
    model = parsed(f"agraph (seq(float[n]) s0) => (seq(float[n]) s2000) {{ {chain} }}")
    with segmented(model) as made:
        (found,) = made([X[0]])
        np.testing.assert_array_equal(found, X[0])
        assert compilations(made) == 0


def test_a_loop_over_a_sequence() -> None:
    with segmented(GROWING) as model:
        y = model(np.array(4), X[0])
        np.testing.assert_array_equal(y, X[0] * np.arange(4, dtype=np.float32)[:, None])
        with pytest.raises(ExecutionError, match="the sequence is empty"):
            model(np.array(0), X[0])


def test_branches_of_different_ranks() -> None:
    with segmented(BRANCHES) as model:
        assert model(np.array(True), X) == X.max()
        np.testing.assert_array_equal(model(np.array(False), X), -X)


def test_texts() -> None:
    a, b = np.array(["a", "b", "ä"], object), np.array(["a", "c", "ä"], object)
    with segmented(TEXTS) as model:
        picked, same = model(a, b, np.array([2, 0, 2]))
        assert picked.tolist() == ["ää", "aa", "ää"]
        assert same.tolist() == [True, False, True]
        empty = np.array([], object)
        picked, same = model(empty, empty, np.array([], np.int64))
        assert picked.shape == same.shape == (0,)


def test_inputs_of_unknown_rank() -> None:
    with segmented(parsed("g (float[] x) => (float[] y) { y = Neg (x) }")) as model:
        for x in (X, X[0], np.float32(3) * np.ones(()), np.ones((0, 2))):
            given = np.asarray(x, np.float32)
            np.testing.assert_array_equal(model(given), -given)
        assert model.run({"x": X})["y"].shape == X.shape


def test_sizes_that_are_given_hold() -> None:
    with tw.compile(AXES, threads=1, cache=False, dims={"n": 3}) as model:
        assert str(model.inputs[0]) == "x: f32[3, m]"
        np.testing.assert_allclose(model(X, np.array([0])), np.maximum(X.sum(0), 0))
        with pytest.raises(ExecutionError, match=r"input x is f32\[3, m\]"):
            model(X.T, np.array([0]))
    with pytest.raises(tw.ConfigError, match="no dynamic dimension named q"):
        tw.compile(AXES, cache=False, dims={"q": 3})


def test_wrong_arguments() -> None:
    with segmented(AXES) as model:
        for arguments, message in (
            ((X,), "not given: input axes"),
            ((X, np.array([0]), X), "3 arguments given"),
            ((X.astype(np.float64), np.array([0])), "input x is f32"),
            ((X[0], np.array([0])), "input x is f32"),
        ):
            with pytest.raises(ExecutionError, match=message):
                model(*arguments)
        with pytest.raises(ExecutionError, match="no input z"):
            model(x=X, axes=np.array([0]), z=X)


def test_an_operator_of_a_sequence_that_nothing_runs() -> None:
    m = parsed("g (seq(float[n]) s) => (float[] y) { y = Relu (s) }")
    with segmented(m) as model, pytest.raises(UnsupportedError, match="Relu waits for s"):
        model([X[0]])


def test_how_it_shows_itself() -> None:
    assert repr(segmented(AXES)).startswith(
        "<SegmentedModel (x: f32[n, m], axes: i64[k]) -> (y: f32"
    )
