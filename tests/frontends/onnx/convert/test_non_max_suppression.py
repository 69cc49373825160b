"""NonMaxSuppression against onnxruntime, and what follows it."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import tilewright as tw
from tests.frontends.onnx.convert.run_node import check_node
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.runtime.cpu.executable import Executable

RNG = np.random.default_rng(4)


def boxes(batches: int, classes: int, count: int) -> list[np.ndarray]:
    return [
        RNG.random((batches, count, 4)).astype(np.float32),
        RNG.random((batches, classes, count)).astype(np.float32),
    ]


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("most", [0, 2, 50])
def test_against_onnxruntime(most: int, center: int) -> None:
    limits = [np.array([most]), np.array([0.4], np.float32), np.array([0.3], np.float32)]
    given = [*boxes(2, 3, 15), *limits]
    check_node("NonMaxSuppression", given, constants=(2, 3, 4), center_point_box=center)
    check_node("NonMaxSuppression", given[:4], center_point_box=center)


def test_a_detector_is_one_function() -> None:
    m = parsed("""
        g (float[1, n, 4] boxes, float[1, c, n] scores) => (float[] y) {
            most = Constant <value = int64[1] {5}> ()
            share = Constant <value = float[1] {0.5}> ()
            picked = NonMaxSuppression (boxes, scores, most, share)
            one = Constant <value = int64[1] {1}> ()
            two = Constant <value = int64[1] {2}> ()
            zero = Constant <value = int64 {0}> ()
            places = Gather <axis = 1> (picked, two)
            flat = Squeeze (places, one)
            all = Gather (boxes, zero)
            y = Gather (all, flat)
        }
    """)
    given = boxes(1, 3, 20)
    with tw.compile(m, threads=1, cache=False) as model:
        assert isinstance(model, Executable)
        found = model(*given)
    session = onnxruntime.InferenceSession(m.SerializeToString())
    np.testing.assert_array_equal(
        found, session.run(None, {"boxes": given[0], "scores": given[1]})[0]
    )
