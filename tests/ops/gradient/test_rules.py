"""Every operator has a gradient rule, or says why it has none."""

from __future__ import annotations

from tilewright.ops.gradient.rules import NO_GRADIENT, PARTS, RULES, attached
from tilewright.ops.op import Op
from tilewright.ops.registry import op_table


def ways(row: Op) -> list[str]:
    """How a row says what its gradient is."""
    given = {
        "vjp": row.vjp is not None,
        "parts": row.parts is not None,
        "no gradient": bool(row.no_gradient),
        "nested graphs": row.region_types is not None,
    }
    return [way for way, holds in given.items() if holds]


def test_every_operator_has_a_rule_or_a_mark() -> None:
    assert not [name for name, row in op_table().items() if not ways(row)]


def test_no_mark_stands_beside_a_rule() -> None:
    rows = [row for row in op_table().values() if row.no_gradient]
    assert not [row.name for row in rows if len(ways(row)) > 1]


def test_rules_are_of_operators() -> None:
    assert not {*RULES, *PARTS, *NO_GRADIENT} - op_table().keys()
    assert not RULES.keys() & PARTS.keys()


def test_a_row_keeps_its_own_rule() -> None:
    row = op_table()["relu"]
    assert attached({"relu": row})["relu"].vjp is row.vjp
