from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.layout.layout_costs import LayoutCost, transpose_cost, typical, window_cost
from tilewright.target.calibration.cpu import LAYOUTS
from tilewright.target.registry import CPUS


def _cost(
    channels: int,
    filters: int,
    size: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
) -> LayoutCost:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, channels, size, size))
    w = g.constant(np.zeros((filters, channels // groups, kernel, kernel), np.float32))
    values = {
        "strides": (stride,) * 2,
        "pads": (kernel // 2 * dilation,) * 4,
        "dilations": (dilation,) * 2,
        "groups": groups,
    }
    graph = g.graph(g.add("conv", x, w, attrs=make_attrs("conv", values)))
    return window_cost(graph, graph.nodes[0], CPUS["x86-64-v4"])


@for_each("stride", [1, 2])
def test_windows_of_one_pixel_are_about_as_good_with_channels_first(stride: int) -> None:
    cost = _cost(64, 128, 32, stride=stride)
    assert cost.channels_last < cost.channels_first < 1.1 * cost.channels_last


def test_few_pixels_waste_columns() -> None:
    few, many = _cost(64, 128, 3), _cost(64, 128, 56)
    assert few.channels_first / few.channels_last > many.channels_first / many.channels_last


def test_wider_windows_follow_lines_where_filters_do_not_fill_vectors() -> None:
    many, few = _cost(64, 64, 32, kernel=3), _cost(64, 10, 32, kernel=3)
    assert many.channels_first > many.channels_last
    assert few.channels_first < few.channels_last


def test_many_channels_and_filters_have_fewer_products_with_channels_last() -> None:
    few, many = (_cost(n, n, 32, kernel=3) for n in (32, 256))
    assert many.channels_last < 0.7 * 64 * few.channels_last
    assert many.channels_first == 64 * (few.channels_first - _copy(32)) + _copy(256)


def _copy(channels: int) -> float:
    """What copying an image of 32 x 32 in order costs."""
    return channels * 32 * 32 * LAYOUTS.pack


def test_wider_windows_that_step_copy_lines_with_gaps() -> None:
    plain, stepping = (_cost(64, 10, 32 * stride, kernel=3, stride=stride) for stride in (1, 2))
    assert plain.channels_first < stepping.channels_first < 1.5 * plain.channels_first
    assert stepping.channels_last == plain.channels_last


def test_a_line_of_one_vector_loads_an_operand_with_every_fma() -> None:
    single, more = _cost(64, 64, 16, kernel=3), _cost(64, 64, 32, kernel=3)
    assert single.channels_first > 1.2 * more.channels_first / 4


def test_small_groups_follow_lines_and_large_ones_channels() -> None:
    small, large = (_cost(64, 64, 32, 3, groups=groups) for groups in (16, 2))
    assert small.channels_first < small.channels_last
    assert large.channels_first > large.channels_last


def test_groups_under_single_taps_follow_all_lines_at_once() -> None:
    lines, pixels = (_cost(64, 64, 4, kernel, groups=8) for kernel in (3, 1))
    assert lines.channels_first / 9 > 2 * pixels.channels_first


def test_groups_that_step_cost_more_along_lines() -> None:
    plain, stepping = (_cost(64, 64, 32 * stride, 3, stride, 16) for stride in (1, 2))
    assert stepping.channels_first > plain.channels_first
    assert stepping.channels_last == plain.channels_last


def test_a_window_of_one_channel_can_follow_lines_or_channels() -> None:
    plain, stepping = (_cost(16, 16, 64, 3, stride, 16) for stride in (1, 2))
    assert plain.channels_first == plain.channels_last
    assert stepping.channels_first == 2 * stepping.channels_last


def test_pooling_costs_its_taps() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 4, 8, 8))
    values = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "kernel": (1, 2)}
    graph = g.graph(g.add("max_pool", x, attrs=make_attrs("max_pool", values)))
    cost = window_cost(graph, graph.nodes[0], CPUS["x86-64-v4"])
    assert cost.channels_last == 2 * 4 * 8 * 7
    assert cost.channels_first > cost.channels_last


@for_each(
    ("shape", "moves"),
    [((2, 64, 1, 1), False), ((2, 1, 8, 8), False), ((2, 3, 8, 8), True)],
)
def test_channels_that_need_not_move_cost_nothing(shape: tuple[int, ...], moves: bool) -> None:
    assert (transpose_cost(tensor(F32, *shape), CPUS["x86-64-v4"]) > 0) == moves


def test_an_element_costs_more_to_move_the_further_away_it_is() -> None:
    target = CPUS["x86-64-v4"]
    images = [1, target.l2 // 2048, target.l3 // 2048]
    each = [transpose_cost(tensor(F32, n, 16, 8, 8), target) / n for n in images]
    assert each[0] < each[1] < each[2]


def test_unknown_sizes_are_taken_to_be_typical() -> None:
    assert typical((Var("N"), const(3))) == typical((const(1), Var("H"), const(3)))
    assert typical((const(0), const(3))) == 3


def test_windows_over_many_lines_fetch_them_from_beyond_l2() -> None:
    """Neighbouring lines share most of what they read; those with holes between them do not."""
    near, far = (_cost(208, 16, 48, 3, dilation=apart) for apart in (1, 4))
    assert far.channels_first > 1.3 * near.channels_first
    assert far.channels_last == near.channels_last
    small = [_cost(16, 16, 48, 3, dilation=apart) for apart in (1, 4)]
    assert small[0] == small[1]
