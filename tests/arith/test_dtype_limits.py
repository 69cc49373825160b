from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.arith.reference import meaning
from tests.arith.strategies import FLOATS, INTEGERS, literals
from tilewright.arith.dtype_limits import highest, lowest, neutral
from tilewright.arith.expr import Binary, Const, const
from tilewright.arith.operators import COMBINE, REDUCTIONS
from tilewright.core.dtypes import BOOL


def test_neutral_elements() -> None:
    for reduction in REDUCTIONS:
        dtypes = (BOOL,) if reduction in ("any", "all") else (*INTEGERS, *FLOATS)
        for dtype in dtypes:
            for value in (lowest(dtype), highest(dtype), const(1, dtype)):
                combined = Binary(COMBINE[reduction], value, neutral(reduction, dtype))
                assert meaning(combined, {}) == meaning(value, {})


@given(st.sampled_from(INTEGERS).flatmap(literals))
def test_every_integer_lies_between_the_limits(literal: Const) -> None:
    assert lowest(literal.dtype).value <= literal.value <= highest(literal.dtype).value
