from __future__ import annotations

from tests.schedule.programs import conv, dense, softmax
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.analysis.gemm import operand_load, overlaps, product_roles, swapped_roles


def test_matrices() -> None:
    roles = product_roles(find_block(dense(), "mm"))
    assert roles is not None
    assert [it.name for it in roles.rows] == ["i0"]
    assert [it.name for it in roles.columns] == ["i1"]
    assert operand_load(roles.left).buffer == "x"
    assert operand_load(roles.right).buffer == "w"
    assert not roles.batch


def test_the_transposed_product() -> None:
    roles = product_roles(find_block(dense(), "mm"))
    assert roles is not None
    other = swapped_roles(roles)
    assert (other.rows, other.columns) == (roles.columns, roles.rows)
    assert (other.left, other.right) == (roles.right, roles.left)
    assert swapped_roles(other) == roles


def test_a_convolution_has_the_last_axis_of_its_result_as_columns() -> None:
    roles = product_roles(find_block(conv(), "conv"))
    assert roles is not None
    assert len(roles.depth) == 2
    assert operand_load(roles.left).buffer == "w"


def test_windows_overlap() -> None:
    roles = product_roles(find_block(conv(), "conv"))
    assert roles is not None
    assert overlaps(roles.right, roles.columns, roles.depth)
    assert not overlaps(roles.left, roles.rows, roles.depth)


def test_other_sums_are_none() -> None:
    assert product_roles(find_block(softmax(), "s")) is None
    assert product_roles(find_block(softmax(), "y")) is None
