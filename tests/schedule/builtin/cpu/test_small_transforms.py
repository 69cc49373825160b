"""Chains of small transforms: computed next to who reads them, formulas written out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.lower.collapse_dims import collapse
from tilewright.lower.loop_nests import program_func
from tilewright.lower.tensor_program import group_program
from tilewright.ops.conv.winograd import WinogradAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.cpu.small_transforms import choices, small_transform_blocks
from tilewright.target.registry import CPUS

WIDE = CPUS["x86-64-v4"]


def _input(*size: int | Expr, channels: int, tile: tuple[int, ...]) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), *size, channels))
    ones = (1,) * len(size)
    sizes = tuple(g.type(x).shape[1:-1])
    attrs = WinogradAttrs(tile, (3,) * len(size), ones, sizes)
    return g.graph(g.add("winograd_input", g.add("relu", x), attrs=attrs))


def _output(*size: int, channels: int, tile: tuple[int, ...], turned: bool = False) -> Graph:
    """Products to an image, plus a bias and another image; `turned` brings the channels first."""
    attrs = WinogradAttrs(tile, (3,) * len(size), (1,) * len(size), tuple(map(const, size)))
    g = GraphBuilder("f")
    m = g.input("m", tensor(F32, *attrs.points, Var("N"), *attrs.tiles, channels))
    other = g.input("other", tensor(F32, Var("N"), *size, channels))
    bias = g.constant(np.linspace(-1, 1, channels, dtype=np.float32), "bias")
    y = g.add("winograd_output", m, attrs=attrs)
    y = g.add("relu", g.add("add", g.add("add", y, bias), other))
    if turned:
        rank = len(size) + 2
        y = g.add("transpose", y, attrs=TransposeAttrs((0, rank - 1, *range(1, rank - 1))))
    return g.graph(y)


@pytest.mark.parametrize("target", [CPUS["aarch64"], WIDE], ids=lambda t: t.cpu)
@pytest.mark.parametrize(
    ("size", "tile", "channels"),
    [((8, 8), (4, 4), 16), ((5, 7), (4, 2), 20), ((6, 3), (3, 5), 3), ((9,), (4,), 8)],
)
def test_meaning(size: tuple[int, ...], tile: tuple[int, ...], channels: int, target) -> None:  # type: ignore[no-untyped-def]
    for graph in (
        _input(*size, channels=channels, tile=tile),
        _output(*size, channels=channels, tile=tile),
        _output(*size, channels=channels, tile=tile, turned=True),
    ):
        for batch in (1, 2):
            assert check(graph, {"N": batch}, target) == ["small_transforms"]


def test_sizes_may_be_symbolic() -> None:
    graph = _input(Var("H"), Var("W"), channels=8, tile=(4, 4))
    for height, width in ((1, 9), (8, 4)):
        assert check(graph, {"N": 2, "H": height, "W": width}) == ["small_transforms"]


def test_formulas_are_written_out_in_vectors() -> None:
    (result,) = scheduled(_input(56, 56, channels=64, tile=(4, 4)))
    found = kinds(result.func)
    assert len(found["unroll"]) == len(found["vectorize"]) == 2
    assert len(found["parallel"]) == 1
    assert "inline(" in str(result.trace)  # relu is computed where it is read


def test_who_is_staged() -> None:
    program = collapse(group_program(_output(8, 8, channels=16, tile=(4, 4))))
    structure = block_graph(program_func(program))
    staged = small_transform_blocks(structure)
    assert staged == {"winograd_output.axis", "winograd_output.axis_1"}
    assert [choices(structure.block(name)) for name in sorted(staged)] == [{"i0": 0}, {"i1": 0}]
