from __future__ import annotations

import pytest
import torch

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.script.functions import (
    SCALAR_TYPES,
    call_aten,
    call_builtin,
    call_prim,
    call_torch,
)


def test_numbers_and_lists() -> None:
    assert call_torch("add", (2, 3), {}) == 5
    assert call_torch("add", ([1], [2, 3]), {}) == [1, 2, 3]
    assert call_torch("floordiv", (-7, 2), {}) == -4
    assert call_torch("slice", ([1, 2, 3, 4], 1, 9223372036854775807, 2), {}) == [2, 4]
    assert call_torch("sum", ([1, 2],), {}) == 3
    assert call_torch("format", ("{} of {}", 1, 2), {}) == "1 of 2"
    assert call_torch("mul", (3, torch.tensor(4)), {}) == 12
    assert call_builtin("int", (2.7,)) == 2
    assert call_builtin("float", ("inf",)) == float("inf")


@pytest.mark.parametrize("value", [True, 3, 2.5])
def test_tensors_of_numbers_have_their_types(value: float) -> None:
    made = call_torch("tensor", (value,), {})
    assert made.dtype == torch.tensor(value).dtype
    assert made == value
    assert call_torch("tensor", (value,), {"dtype": 7}).dtype == torch.float64


def test_operators_of_tensors() -> None:
    x = torch.randn(3)
    assert torch.equal(call_torch("add", (x, 1), {}), x + 1)
    assert torch.equal(call_aten("stack", ([x, x],), {}), torch.stack([x, x]))
    assert call_torch("zeros", ([2],), {"dtype": 4}).dtype == torch.int64
    assert SCALAR_TYPES[call_prim("dtype", (x,))] == torch.float32


def test_what_is_unknown_is_told() -> None:
    for call in (
        lambda: call_torch("gcd", (4, 6), {}),
        lambda: call_torch("no_such", (torch.ones(1),), {}),
        lambda: call_prim("no_such", ()),
        lambda: call_builtin("eval", ("1",)),
        lambda: call_torch("from_file", ("/etc/passwd",), {}),
    ):
        with pytest.raises(UnsupportedError):
            call()
    with pytest.raises(UnsupportedError, match="raises an exception for these inputs: no"):
        call_prim("RaiseException", ("no",))
