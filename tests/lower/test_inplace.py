from __future__ import annotations

from tilewright.core.dtypes import F32
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Program
from tilewright.lower.inplace import inplace_inputs


def _program(turned: bool) -> Program:
    """`x + y` by elements, `y` read at the same place or transposed."""
    b = Builder("f")
    x, y = b.input("x", F32, (4, 4)), b.input("y", F32, (4, 4))
    added = b.compute("z", (4, 4), lambda i, j: x[i, j] + (y[j, i] if turned else y[i, j]))
    return b.program(added)


def test_inputs_read_only_where_the_output_is_written() -> None:
    assert inplace_inputs(_program(turned=False)) == (0, 1)
    assert inplace_inputs(_program(turned=True)) == (0,)
