"""Convolutions with channels first pad a band of lines at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, scheduled
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS

SMALL_L2 = replace(CPUS["x86-64-v3"], l2=48 * 1024, cores=1)


def _conv(
    height: int, step: int = 1, dilation: int = 1, groups: int = 1, window: int = 3, pad: int = -1
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 4, height, 33))
    shape = (6, 4 // groups, window, window)
    w = g.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    pads = (dilation * (window // 2) if pad < 0 else pad,) * 4
    attrs = ConvAttrs((step, step), pads, (dilation,) * 2, groups=groups)
    return g.graph(g.add("relu", g.add("conv", x, w, attrs=attrs)))


def _text(graph: Graph, target: CpuTarget = SMALL_L2) -> str:
    (result,) = scheduled(graph, target)
    return print_func(result.func)


def _is_banded(text: str) -> bool:
    return ".padded.ax0 in" in text


@pytest.mark.parametrize("height", [24, 29])
@pytest.mark.parametrize("step", [1, 2])
@for_each(("dilation", "groups"), [(1, 1), (3, 1), (1, 2)])
def test_bands_compute_what_whole_images_do(
    height: int, step: int, dilation: int, groups: int
) -> None:
    graph = _conv(height, step, dilation, groups)
    assert _is_banded(_text(graph))
    check(graph, {}, SMALL_L2)


def test_the_lines_of_a_band_are_on_the_stack() -> None:
    text = _text(_conv(24))
    assert "conv.padded: f32[2, 4, 26, 35] @local" in text
    assert "for conv.padded.ax2 in serial(26)" not in text


def test_what_fits_in_l2_is_padded_at_once() -> None:
    assert not _is_banded(_text(_conv(24), CPUS["x86-64-v3"]))


def test_single_pixels_are_packed() -> None:
    graph = _conv(24, pad=1, window=1)
    assert not _is_banded(_text(graph))
    check(graph, {}, SMALL_L2)


def test_lines_under_many_windows_are_not_copied_again_and_again() -> None:
    assert not _is_banded(_text(_conv(24, dilation=4, window=5)))
