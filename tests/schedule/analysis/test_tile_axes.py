from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.schedule.analysis.blocks import block_graph, is_plain, is_unit, reductions
from tilewright.schedule.analysis.tile_axes import (
    copies_b_for_one_row,
    match_tile_axes,
    panels_bytes,
    row_bytes,
)


def test_roles() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, 16))
    structure = block_graph(func)
    block = next(b for b in structure.blocks if reductions(b))
    axes = match_tile_axes(block, structure, constants)
    assert axes is not None
    assert axes.packed_b is not None
    assert axes.packed_b.buffer in constants
    assert axes.m is not None
    assert str(axes.m.extent) == "8"
    assert str(axes.n.extent) == "12"
    assert axes.batch == ()
    ((func, constants),) = sources(KERNELS["sum_rows"](8, 12, 16))
    structure = block_graph(func)
    assert match_tile_axes(structure.blocks[0], structure, constants) is None


def test_operands() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, 16))
    structure = block_graph(func)
    block = next(b for b in structure.blocks if reductions(b))
    axes = match_tile_axes(block, structure, constants)
    assert axes is not None
    assert axes.packed_b is not None
    assert is_plain(axes.packed_b, block)
    assert is_unit(axes.packed_b, structure, axes.n.name)
    assert not is_unit(axes.packed_b, structure, reductions(block)[0].name)
    assert row_bytes(block, axes, structure) == 16 * 4
    assert panels_bytes(block, axes) == 16 * 12 * 4


def test_rows_of_unknown_width_are_unknown_bytes_apart() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, Var("K")))
    structure = block_graph(func)
    block = next(b for b in structure.blocks if reductions(b))
    axes = match_tile_axes(block, structure, constants)
    assert axes is not None
    assert row_bytes(block, axes, structure) == 0
    assert not copies_b_for_one_row(axes, structure, constants)
