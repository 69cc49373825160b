from __future__ import annotations

import pytest

from tilewright.arith.expr import Load
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers, find_block, statements_in
from tilewright.schedule.intrin.padded import drop_bounds, is_bounds

COPY = """func @copy(x: f16[{shape}], out y: f16[128, 64]) {{
  for i, k in serial(128, 64) {{
    block "y" [vi: S(128) = i, vk: S(64) = k] reads x[{index}] writes y[vi, vk] {{
      y[vi, vk] = x[{index} ? {mask}]
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("shape", "index", "mask", "bounds"),
    [
        ("100, 40", "vi, vk", "vi < 100 & vk < 40", True),
        ("100, 40", "vi, vk", "vk < 40", True),
        ("1, 228, 104", "0, vi + 128, vk + 64", "vi + 128 < 228 & vk + 64 < 104", True),
        ("M, 40", "vi, vk", "vi < M", True),
        ("100, 40", "vi, vk", "vi < 99", False),
        ("100, 40", "vi, vk", "vi < vk", False),
        # Behind the rows of the first matrix there are those of the second.
        ("2, 100, 40", "0, vi, vk", "vi < 100", False),
        ("2, 100, 40", "0, vi, vk", "vk < 40", True),
        ("40, 100, 30", "vk, vi, 0", "vk < 40", False),
    ],
)
def test_the_bounds_of_one_matrix(shape: str, index: str, mask: str, bounds: bool) -> None:
    func = parse_func(COPY.format(shape=shape, index=index, mask=mask))
    block = find_block(func, "y")
    assert isinstance(block.body, Store)
    load = block.body.value
    assert isinstance(load, Load)
    known = buffers(func)
    assert is_bounds(load, known["x"].shape) == bounds
    (store,) = (s for s in statements_in(drop_bounds(block, known).body) if isinstance(s, Store))
    assert isinstance(store.value, Load)
    assert (store.value.mask is None) == bounds
