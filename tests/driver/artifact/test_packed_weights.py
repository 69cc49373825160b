from __future__ import annotations

import mmap
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tests.schedule.programs import matmul
from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.driver.artifact.packed_weights import WeightTable, pack
from tilewright.ir.graph.nodes import Constant
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Layout
from tilewright.ir.types import tensor
from tilewright.runtime.container import WEIGHT_ALIGNMENT
from tilewright.schedule.schedule import Schedule


def _layout(shape: tuple[int, ...], parts: list[tuple[int, int, int]]) -> Layout:
    return Layout(tuple(const(n) for n in shape), tuple(parts))


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    parts = []
    for axis in range(len(shape)):
        block = draw(st.sampled_from((0, 0, 2, 3, 4)))
        parts += [(axis, block, 0), (axis, block, 1)] if block else [(axis, 0, 0)]
    return _layout(tuple(shape), draw(st.permutations(parts)))


@given(layouts())
def test_every_element_is_where_the_layout_says(layout: Layout) -> None:
    """Part 0 of a blocked axis counts blocks, part 1 within one; what lies beyond is zero."""
    shape = [int(d.value) for d in layout.logical]  # type: ignore[attr-defined]
    data = np.arange(1, 1 + np.prod(shape), dtype="f4").reshape(shape)
    packed = pack(data, layout)
    for index in product(*map(range, shape)):
        place = tuple(
            index[axis] if not block else (index[axis] % block if part else index[axis] // block)
            for axis, block, part in layout.parts
        )
        assert packed[place] == data[index]
    assert np.count_nonzero(packed) == data.size


@for_each(("k", "n"), [(3, 5), (8, 4), (1, 9)])
def test_packing_is_what_transform_layout_means(k: int, n: int) -> None:
    before = matmul(4, n, k)
    sch = Schedule(before)
    sch.transform_layout("w", [(1, 4, 0), (0, 0, 0), (1, 4, 1)])
    (name, layout), *_ = sch.func.layouts
    assert name == "w"
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, k)).astype("f4"), rng.standard_normal((k, n)).astype("f4")
    expected, found = np.zeros((4, n), "f4"), np.zeros((4, n), "f4")
    run_func(before, {"x": x, "w": w, "y": expected})
    run_func(sch.func, {"x": x, "w": pack(w, layout), "y": found})
    np.testing.assert_array_equal(found, expected)


def test_the_table_gives_each_constant_and_layout_one_place() -> None:
    table = WeightTable()
    a = Constant("a", tensor(F32, 3, 5), np.arange(15, dtype="f4").reshape(3, 5))
    b = Constant("b", tensor(F32, 2), np.ones(2, "f4"))
    layout = _layout((3, 5), [(1, 4, 0), (0, 0, 0), (1, 4, 1)])
    offsets = [table.offset(a, None), table.offset(a, layout), table.offset(b, None)]
    assert offsets == [table.offset(a, None), table.offset(a, layout), table.offset(b, None)]
    assert len(set(offsets)) == 3
    assert all(o % WEIGHT_ALIGNMENT == 0 for o in offsets)
    items = list(table.items())
    ends = [o + d.nbytes for o, d in items]
    assert all(end <= start for end, (start, _) in zip(ends, items[1:], strict=False))
    assert ends[-1] <= table.size
    np.testing.assert_array_equal(items[0][1], a.data)
    np.testing.assert_array_equal(items[1][1], pack(a.data, layout))


def test_views_are_written_in_order() -> None:
    table = WeightTable()
    data = np.arange(6, dtype="f4").reshape(2, 3).T
    table.offset(Constant("a", tensor(F32, 3, 2), data), None)
    ((_, written),) = table.items()
    assert written.flags.c_contiguous
    np.testing.assert_array_equal(written, data)


def test_a_mapped_file_can_be_read_again_after_it_was_released(tmp_path) -> None:
    path = tmp_path / "data"
    path.write_bytes(np.arange(4096, dtype=np.float32).tobytes())
    with open(path, "rb") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    data = np.frombuffer(view, np.float32).reshape(64, 64)
    table = WeightTable()
    table.offset(Constant("w", tensor(F32, 64, 64), data), None)
    for _ in range(2):
        ((_, written),) = table.items()
        np.testing.assert_array_equal(written, np.arange(4096).reshape(64, 64))
