"""Loops as TensorFlow exports them are native, and agree with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime

from tests.differential.exported_loops import DECODER, FEATURES, LAYERS, UNITS, exported
from tilewright.driver.compile import compile
from tilewright.runtime.cpu.executable import Executable

Arrays = dict[str, np.ndarray]


def check(model: onnx.ModelProto, runs: Iterator[Arrays]) -> None:
    """Compare a native model with ONNX Runtime; NaN where it has NaN."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [v.name for v in model.graph.output]
    with compile(model, cache=False) as compiled:
        assert isinstance(compiled, Executable)
        for given in runs:
            found = compiled.run(given)
            for name, wanted in zip(names, session.run(names, given), strict=True):
                assert found[name].shape == wanted.shape, name
                np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)


def sequences() -> Iterator[Arrays]:
    rng = np.random.default_rng(0)
    for batch, steps in ((1, 6), (3, 1), (5, 9)):
        x = rng.normal(size=(batch, steps, FEATURES)).astype(np.float32)
        lengths = rng.integers(0, steps + 1, (batch, 1))
        yield {"x": x, "valid": np.arange(steps) < lengths}
    x[0, 2, 1] = np.nan
    yield {"x": x, "valid": np.arange(steps) < lengths}


def decodings() -> Iterator[Arrays]:
    """The limit is data; at most nine steps are taken."""
    rng = np.random.default_rng(1)
    for batch, steps, limit in ((1, 4, 5), (3, 7, 1), (2, 3, 40)):
        states = rng.normal(size=(batch, steps, UNITS)).astype(np.float32)
        yield {"states": states, "limit": np.array(limit, np.int32)}


def test_layers() -> None:
    check(exported(LAYERS), sequences())


def test_a_decoder() -> None:
    check(exported(DECODER), decodings())
