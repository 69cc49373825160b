"""A step of finalization on a function from `a` to `c`: machine code and interpreter agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.codegen.native_func import both
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.verify import verify_func


def text_after(step: Callable[[Func], Func], func: Func, size: int) -> str:
    """The text after the step, whose results are those before; both buffers have `size` numbers."""
    after = step(func)
    verify_func(after)
    given = {"a": np.random.default_rng(0).random(size).astype("f4"), "c": np.zeros(size, "f4")}
    found, expected = both(after, given)
    np.testing.assert_array_equal(found["c"], expected["c"])
    before, _ = both(func, given)
    np.testing.assert_array_equal(found["c"], before["c"])
    return print_func(after)
