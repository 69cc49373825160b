from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, dense, matmul, refused
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.schedule import Schedule


def test_parameter(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    sch.transform_layout("w", [[1, 12, 0], [0, 0, 0], [1, 12, 1]])
    golden(print_func(sch.func))
    assert parse_func(print_func(sch.func)) == sch.func
    check_schedule(sch, before)


def test_allocation() -> None:
    before = dense()
    sch = Schedule(before)
    sch.transform_layout("mm", [[1, 4, 1], [0, 8, 0], [1, 4, 0], [0, 8, 1]])
    assert not sch.func.layouts
    assert [str(d) for d in buffers(sch.func)["mm"].shape] == [
        "4",
        "(M + 7) // 8",
        "(N + 3) // 4",
        "8",
    ]
    check_schedule(sch, before)


def test_packed_by_a_copy() -> None:
    before = matmul()
    sch = Schedule(before)
    copy = sch.cache_read("y", "w", "global")
    sch.transform_layout(copy, [[1, 4, 0], [0, 0, 0], [1, 4, 1]])
    check_schedule(sch, before)


@for_each(
    "parts",
    [
        [[0, 0, 0]],
        [[0, 0, 0], [1, 4, 0]],
        [[0, 0, 0], [1, 4, 0], [1, 3, 1]],
        [[0, 0, 0], [1, 4, 0], [1, 4, 0]],
        [[0, 0, 0], [1, 0, 0], [2, 0, 0]],
    ],
)
def test_incomplete_parts_are_refused(parts) -> None:
    refused("transform-layout.parts", Schedule(matmul()).transform_layout, "w", parts)


def test_refused() -> None:
    whole = [[1, 0, 0], [0, 0, 0]]
    sch = Schedule(matmul())
    refused("transform-layout.output", sch.transform_layout, "y", whole)
    refused("transform-layout.buffer", sch.transform_layout, "v", whole)
    sch.transform_layout("w", whole)
    refused("transform-layout.twice", sch.transform_layout, "w", whole)
