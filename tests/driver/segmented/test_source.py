"""The driver needs no more of a front end than the protocol says."""

from __future__ import annotations

from tests.frontends.onnx.segments.segmented_models import AXES
from tilewright.driver.segmented.source import RemainingGraph, SegmentSource
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource


def test_onnx_implements_it() -> None:
    source: SegmentSource = OnnxSegmentSource(AXES)
    remaining: RemainingGraph = source.remaining()
    assert remaining.reads() == {"x", "axes", "s", "y"}
    assert [node.op_type for node in remaining.nodes] == ["ReduceSum", "Relu"]
