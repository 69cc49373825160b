from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import scheduled, sources
from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import buffers
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.elementwise.activation import AlphaAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.schedule.builtin.cpu.gemm.mc_blocking import MAX_EXTRA, mc_tiles_near
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.target.registry import CPUS


@for_each("tiles", [1, 2, 7, 33, 196, 349, 523, 697, 10007])
@for_each("wanted", [1, 5, 68, 100000])
def test_groups_are_whole_but_for_a_few_tiles(tiles: int, wanted: int) -> None:
    found = mc_tiles_near(tiles, wanted)
    assert 1 <= found <= tiles
    assert -tiles % found <= max(MAX_EXTRA) * tiles
    if -tiles % found > min(MAX_EXTRA) * tiles:  # only where groups were far too small
        usual = [n for n in range(1, tiles + 1) if -tiles % n <= min(MAX_EXTRA) * tiles]
        assert not [n for n in usual if wanted <= 2 * n <= 2 * wanted]
    if tiles > 300 and wanted == 68:  # also where their number is prime
        assert 2 / 3 < found / wanted < 3 / 2


@for_each("tiles", [23, 37, 41, 43, 59, 61, 79])
@for_each("wanted", [8, 11, 16, 23])
def test_prime_numbers_of_tiles_have_groups_about_as_large_as_wanted(
    tiles: int, wanted: int
) -> None:
    assert 1 / 2 <= mc_tiles_near(tiles, wanted) / wanted <= 2


def test_any_number_of_tiles_is_cut_at_once() -> None:
    assert mc_tiles_near(1 << 60, 1 << 17) == 1 << 17
    assert mc_tiles_near((1 << 61) - 1, 1000) == 1000


def _groups(trace: str) -> tuple[int, int]:
    """How many tiles are a group, and how many rows a tile."""
    found = re.search(r'split\("[^"]*i0", \[\?, (\d+), (\d+)\]\)', trace)
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_prime_number_of_tiles_is_cut_into_groups() -> None:
    (result,) = scheduled(KERNELS["dense"](3136, 256, 64), CPUS["x86-64-v4"])
    together, rows = _groups(str(result.trace))
    tiles = -(-3136 // rows)
    assert (rows, tiles) == (6, 523)
    assert 1 < together < tiles
    assert f'"i0", {rows * together})' in str(result.trace)


def test_rows_of_a_single_panel_are_one_group() -> None:
    (result,) = scheduled(KERNELS["dense"](16 * 5000, 16, 64), CPUS["x86-64-v4"])
    assert _groups(str(result.trace)) == (5000, 16)


@for_each(("rows", "edge"), [(16 * 101 - 1, 0), (16 * 100 + 9, 1)])
def test_tiles_beside_the_last_group_store_nothing(rows: int, edge: int) -> None:
    """Also where the last tile of all may be lower, and others come after it."""
    ((func, constants),) = sources(KERNELS["dense"](rows, 16, 2))

    def decide(name: str, default: Any, options: tuple[Any, ...]) -> Any:
        if name.endswith(".mc_tiles"):
            return 3
        return edge if name.endswith(".edge_rows") else default

    result = schedule_func(func, constants, CPUS["x86-64-v4"], decide)
    assert _groups(str(result.trace)) == (3, 16)
    assert -(-rows // 16) % 3 != 0
    assert ('"edge_rows", 1)' in str(result.trace)) == (edge == 1)
    arrays = sample(result.func, {})
    expected = {name: array.copy() for name, array in run(func, arrays, {}).items()}
    for name, found in run(finalize(result.func, CPUS["x86-64-v4"]), arrays, {}).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-6)


def _conv_to_channels_first(side: int, filters: int, kernel: int, leaky: bool) -> Graph:
    g = GraphBuilder("f")
    x, w = tensor(F32, 2, side, side, 3), tensor(F32, filters, 3, kernel, kernel)
    window = ConvAttrs((1, 1), (kernel // 2,) * 4, (1, 1), "channels_last")
    y = g.add("conv", g.input("x", x), g.input("w", w), attrs=window)
    y = g.add("add", y, g.input("b", tensor(F32, filters)))
    y = g.add("leaky_relu", y, attrs=AlphaAttrs(0.1)) if leaky else y
    return g.graph(g.add("transpose", y, attrs=TransposeAttrs((0, 3, 1, 2))))


@for_each("leaky", [False, True])
@for_each(("side", "filters", "kernel"), [(9, 17, 3), (8, 32, 1), (5, 70, 5), (13, 40, 3)])
def test_a_group_of_results_is_transposed_in_l2(
    side: int, filters: int, kernel: int, leaky: bool
) -> None:
    target = replace(CPUS["x86-64-v4"], l2=1 << 13)
    ((func, constants),) = sources(_conv_to_channels_first(side, filters, kernel, leaky), target)
    result = schedule_func(func, constants, target)
    final = finalize(result.func, target)
    (kept,) = (b for b in buffers(final).values() if b.name == "conv")
    assert kept.scope == "local"
    assert 0 < (as_int(kept.shape[0]) or 0) * 4 <= max(target.l2 // 4, 16 * 8 * 16 * 4)
    arrays = sample(result.func, {})
    expected = {name: array.copy() for name, array in run(func, arrays, {}).items()}
    for name, found in run(final, arrays, {}).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-5)
