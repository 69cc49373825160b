from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.analysis.padding_share import work_left
from tilewright.schedule.analysis.tile_axes import match_tile_axes


def _conv(lines: int, line: int, taps: int, apart: int, weight: float = 1.0) -> Graph:
    g = GraphBuilder("f")
    pad = apart * (taps - 1) // 2
    values = {
        "strides": (1, 1),
        "pads": (pad,) * 4,
        "dilations": (apart,) * 2,
        "layout": "channels_last",
    }
    w = g.constant(np.full((16, 8, taps, taps), weight, np.float32))
    x = g.input("x", tensor(F32, 1, lines, line, 8))
    return g.graph(g.add("conv", x, w, attrs=make_attrs("conv", values)))


def _left(graph: Graph, most: int) -> tuple[float, ...]:
    ((func, constants),) = sources(graph)
    blocks = block_graph(func)
    block = next(b for b in blocks.blocks if reductions(b))
    axes = match_tile_axes(block, blocks, constants)
    assert axes is not None
    return work_left(func, block, axes.m, most)


def test_single_pixels_execute_what_is_inside() -> None:
    """Of 3 taps 4 apart, 6 pixels see the middle one, and 2 each of the others: in both axes."""
    assert _left(_conv(6, 6, 3, 4), 1)[0] == pytest.approx(((6 + 2 + 2) / 18) ** 2)


def test_tiles_within_a_line_skip_more_than_those_that_go_on_in_the_next() -> None:
    left = _left(_conv(16, 16, 5, 4), 8)
    assert left[3] == pytest.approx(left[0])
    assert left[3] < left[4]
    assert left[3] < left[2]
    assert max(left) < 1.0


def test_weights_that_may_not_be_finite_are_all_multiplied() -> None:
    assert _left(_conv(6, 6, 3, 4, weight=np.inf), 4) == ()
