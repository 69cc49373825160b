"""Convolutions of bytes on tensor cores: exact, whatever their channels and windows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import (
    A100,
    all_bytes,
    on_threads,
    the_kernel,
    tiles,
)
from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.core.dtypes import F32, I8, I32, U8, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.gpu import GpuTarget


def _conv(channels: int, filters: int, stride: int, dtype: DType) -> Graph:
    """A convolution with channels last, less a zero point's part, in bytes again."""
    b = GraphBuilder("conv")
    x = b.input("x", tensor(dtype, 2, 9, 7, channels))
    w = b.constant(np.ones((filters, channels, 3, 3), np.int8))
    values = {"strides": (stride, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    attrs = make_attrs("conv_i32acc", {**values, "layout": "channels_last"})
    sums = b.add("conv_i32acc", x, w, attrs=attrs)
    y = b.add("sub", sums, b.input("zeros", tensor(I32, filters)))
    real = b.add("mul", b.add("cast", y, attrs=CastAttrs(F32)), b.input("scale", tensor(F32, 1)))
    return b.graph(b.add("cast", b.add("round", real), attrs=CastAttrs(U8)))


@pytest.mark.parametrize(
    ("channels", "filters", "stride", "dtype", "target", "found"),
    [
        (64, 64, 1, U8, H200, "mma_u8i8"),
        (16, 24, 2, I8, H200, "mma_i8"),
        (48, 40, 1, U8, A100, "mma_u8i8"),
        (21, 33, 2, U8, H200, "mma_u8i8"),
    ],
)
def test_convolutions_of_bytes_are_exact(
    channels: int, filters: int, stride: int, dtype: DType, target: GpuTarget, found: str
) -> None:
    graph = _conv(channels, filters, stride, dtype)
    func, scheduled = the_kernel(graph, target)
    assert any(found in t.intrinsic for t in tiles(scheduled))
    on_threads(func, scheduled, {}, all_bytes(func), graph, target)
