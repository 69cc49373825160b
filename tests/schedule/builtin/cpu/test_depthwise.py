from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.conv.sliding_window import arrange
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reads_of, spatial
from tilewright.target.registry import CPUS

LAYOUTS = ["channels_first", "channels_last"]


def _windows(
    op: str,
    layout: str,
    channels: int,
    size: tuple[int | Expr, ...],
    kernel: tuple[int, ...] = (3, 3),
    batch: int | Expr = 1,
    **values: object,
) -> Graph:
    """A depthwise convolution with a bias, or pooling; padding keeps the size."""
    g = GraphBuilder("f")
    rank = len(kernel)
    shape = arrange(
        layout,
        tensor(F32, batch).shape[0],
        tensor(F32, channels).shape[0],
        tensor(F32, *size).shape,
    )
    x = g.input("x", tensor(F32, *shape))
    given = {
        "strides": (1,) * rank,
        "pads": tuple(k // 2 for k in kernel) * 2,
        "dilations": (1,) * rank,
        "layout": layout,
        **values,
    }
    if op != "conv":
        return g.graph(g.add(op, x, attrs=make_attrs(op, {**given, "kernel": kernel})))
    rng = np.random.default_rng(0)
    w = g.constant(rng.standard_normal((channels, 1, *kernel)).astype(np.float32))
    y = g.add("conv", x, w, attrs=make_attrs(op, {**given, "groups": channels}))
    ones = (1,) * rank
    bias = rng.standard_normal((channels, *ones) if layout == LAYOUTS[0] else (channels,))
    return g.graph(g.add("relu", g.add("add", y, g.constant(bias.astype(np.float32)))))


CASES = [
    ("conv", 16, (12, 12), (3, 3), {}),
    ("conv", 7, (9, 11), (3, 3), {}),
    ("conv", 12, (13, 8), (5, 5), {"strides": (2, 2)}),
    ("conv", 8, (10, 14), (3, 2), {"pads": (2, 0, 0, 3)}),
    ("conv", 8, (12, 12), (3, 3), {"dilations": (2, 3), "pads": (2, 3, 2, 3)}),
    ("conv", 8, (12, 12), (3, 3), {"pads": (0, 0, 0, 0)}),
    ("conv", 8, (2, 1), (3, 3), {}),
    ("conv", 5, (13, 13), (7, 7), {}),
    ("conv", 5, (23, 9), (3, 3), {"strides": (1, 2)}),
    ("conv", 20, (6,), (3,), {}),
    ("conv", 8, (4, 5, 6), (3, 3, 3), {}),
    ("max_pool", 9, (10, 16), (3, 3), {"strides": (2, 2)}),
    ("max_pool", 8, (7, 7), (2, 2), {"pads": (0, 0, 0, 0), "strides": (2, 2)}),
    ("average_pool", 8, (9, 9), (3, 3), {"ceil": True, "strides": (2, 2)}),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("op", "channels", "size", "kernel", "values"), CASES)
def test_machine_code(
    layout: str,
    op: str,
    channels: int,
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    values: dict[str, object],
) -> None:
    graph = _windows(op, layout, channels, size, kernel, batch=2, **values)
    check_native(graph, random_inputs(graph)).close()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ["conv", "max_pool"])
def test_what_is_not_finite(op: str, layout: str) -> None:
    graph = _windows(op, layout, 8, (9, 12))
    inputs = random_inputs(graph)
    flat = inputs["x"].reshape(-1)
    flat[[3, 50, 200, 400]] = np.nan, np.inf, -np.inf, -0.0
    check_native(graph, inputs).close()


@for_each("layout", LAYOUTS)
@for_each("op", ["conv", "max_pool", "average_pool"])
def test_the_schedule_keeps_the_meaning(op: str, layout: str) -> None:
    assert check(_windows(op, layout, 8, (6, 8)), {}) == ["depthwise"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_symbolic_sizes(layout: str) -> None:
    graph = _windows("conv", layout, 8, (Var("H"), Var("W")), batch=Var("N"))
    check(graph, {"N": 2, "H": 5, "W": 9})


def test_channels_last_make_no_copy() -> None:
    (kernel,) = scheduled(_windows("conv", "channels_last", 16, (24, 24)))
    assert "padded" not in {b.name for b in kernel.func.params}
    assert "alloc conv.padded" not in print_func(kernel.func)
    assert "partition=1" in print_func(kernel.func)


def test_wide_lines_are_computed_in_strips() -> None:
    """Five lines of 512 channels are far more than the nearest cache holds."""
    small = CPUS["x86-64-v3"]
    (kernel,) = scheduled(_windows("conv", "channels_last", 512, (14, 14), (5, 5)), small)
    loops = next(d for d in kernel.trace.steps if d.name == "split" and len(d.args[1]) == 4)
    _, panels, vectors, lanes = loops.args[1]
    strip = panels * vectors * lanes
    assert 512 % strip == 0
    assert 5 * 14 * 4 * strip <= small.l1 // 4
    (narrow,) = scheduled(_windows("conv", "channels_last", 16, (14, 14), (5, 5)), small)
    assert not any(d.name == "split" and len(d.args[1]) == 4 for d in narrow.trace.steps)


def test_strips_compute_the_same() -> None:
    graph = _windows("conv", "channels_last", 256, (7, 14), (5, 5))
    check_native(graph, random_inputs(graph), threads=2).close()


@for_each("op", ["conv", "max_pool"])
def test_channels_first_copy_one_channel_at_a_time(op: str) -> None:
    (kernel,) = scheduled(_windows(op, "channels_first", 16, (64, 64)))
    text = print_func(kernel.func)
    (loop,) = kinds(kernel.func)["parallel"]
    assert text.index(f"for {loop}") < text.index(f'block "{op}.padded"')


@for_each("step", [1, 2, 3])
@for_each(
    "op, block",
    [("conv", "conv"), ("max_pool", "max_pool"), ("average_pool", "average_pool.total")],
)
def test_windows_that_step_along_lanes_load_whole_vectors(op: str, block: str, step: int) -> None:
    """Every second element would be two loads and a shuffle for each tap."""
    (kernel,) = scheduled(
        _windows(op, "channels_first", 16, (40, 40), (5, 5), strides=(step, step))
    )
    windows = block_graph(kernel.func).block(block)
    (load,) = [r for r in reads_of(windows) if r.buffer.endswith(".padded")]
    assert stride_of(load.indices[-1], spatial(windows)[-1].name) == 1
    assert len(load.indices) == (3 if step == 1 else 4)


@for_each("lines, rows", [(13, 8), (14, 7), (16, 8)])
def test_tiles_have_many_rows_whatever_the_number_of_lines(lines: int, rows: int) -> None:
    graph = _windows("conv", "channels_first", 16, (lines, lines), (7, 7))
    (kernel,) = scheduled(graph, CPUS["x86-64-v4"])
    assert f"in unroll({rows})" in print_func(kernel.func)
    assert ("shift_inwards" in print_func(kernel.func)) == (lines % rows != 0)


@for_each("width, lanes", [(3, 4), (7, 8), (8, 8), (9, 16), (40, 16)])
def test_a_short_line_of_pixels_is_a_short_vector(width: int, lanes: int) -> None:
    graph = _windows("max_pool", "channels_first", 3, (10, width))
    check(graph, {}, CPUS["x86-64-v4"])
    (result,) = scheduled(graph, CPUS["x86-64-v4"])
    found = [as_int(loop.extent) for loop in loops(result.func.body) if loop.kind == "vectorize"]
    assert set(found) == {lanes}


def test_a_copy_that_transposes_stays_one() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 8, 12, 12))
    last = g.add("transpose", x, attrs=make_attrs("transpose", {"perm": (0, 2, 3, 1)}))
    values = {"strides": (2, 2), "pads": (1,) * 4, "dilations": (1, 1), "kernel": (3, 3)}
    attrs = make_attrs("average_pool", {**values, "layout": "channels_last"})
    graph = g.graph(g.add("average_pool", last, attrs=attrs))
    check_native(graph, random_inputs(graph)).close()
    (kernel,) = scheduled(graph)
    assert "alloc average_pool.padded" in print_func(kernel.func)


def test_a_matrix_product_is_none() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 8, 8))
    w = g.constant(np.zeros((8, 8), np.float32))
    assert check(g.graph(g.add("matmul", x, w)), {}) == ["register_blocked"]


@for_each("channels, padded", [(36, 48), (100, 112), (32, 32)])
def test_sums_of_all_lanes_are_computed_where_channels_do_not_fill_vectors(
    channels: int, padded: int
) -> None:
    """A sum of which lanes are masked would be stored and loaded again for each product."""
    graph = _windows("conv", "channels_last", channels, (11, 11), (5, 5))
    (kernel,) = scheduled(graph, CPUS["x86-64-v4"])
    pads = [d.args for d in kernel.trace.steps if d.name == "pad" and "zeros" in d.args]
    assert len(pads) == (padded > channels)
    for args in pads:
        assert padded % args[2] == 0
        assert padded - args[2] < channels
