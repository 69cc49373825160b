from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.schedule.analysis.blocks import facts_of, reductions
from tilewright.schedule.analysis.tile_axes import (
    copies_for_one_row,
    is_plain,
    is_unit,
    panels_bytes,
    row_bytes,
    tile_roles,
)


def test_roles() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, 16))
    facts = facts_of(func)
    block = next(b for b in facts.blocks if reductions(b))
    roles = tile_roles(block, facts, constants)
    assert roles is not None
    assert roles.panel is not None
    assert roles.panel.buffer in constants
    assert roles.row is not None
    assert str(roles.row.extent) == "8"
    assert str(roles.column.extent) == "12"
    assert roles.batch == ()
    ((func, constants),) = sources(KERNELS["sum_rows"](8, 12, 16))
    facts = facts_of(func)
    assert tile_roles(facts.blocks[0], facts, constants) is None


def test_operands() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, 16))
    facts = facts_of(func)
    block = next(b for b in facts.blocks if reductions(b))
    roles = tile_roles(block, facts, constants)
    assert roles is not None
    assert roles.panel is not None
    assert is_plain(roles.panel, block)
    assert is_unit(roles.panel, facts, roles.column.name)
    assert not is_unit(roles.panel, facts, reductions(block)[0].name)
    assert row_bytes(block, roles, facts) == 16 * 4
    assert panels_bytes(block, roles) == 16 * 12 * 4


def test_rows_of_unknown_width_are_unknown_bytes_apart() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, Var("K")))
    facts = facts_of(func)
    block = next(b for b in facts.blocks if reductions(b))
    roles = tile_roles(block, facts, constants)
    assert roles is not None
    assert row_bytes(block, roles, facts) == 0
    assert not copies_for_one_row(roles, facts, constants)
