from __future__ import annotations

from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tests.schedule.programs import matmul
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.choice_log import begin_kernel, record_choice, recorded_choices
from tilewright.schedule.schedule import Schedule
from tilewright.target.registry import resolve_target


def never() -> list[int]:
    raise AssertionError("nobody asked")


def test_nothing_is_listed_unless_somebody_asks() -> None:
    assert Schedule(matmul()).choose("n", 1, never) == 1
    record_choice("n", 1, never)
    with recorded_choices() as choices:
        record_choice("n", 1, never)  # before the first kernel
    assert choices == {}


def test_a_choice_has_its_second_best() -> None:
    costs = {2: 3.0, 4: 1.0, 8: 1.5}
    with recorded_choices() as choices:
        begin_kernel("mm")
        assert Schedule(matmul()).choose("rows", 4, lambda: costs, costs.__getitem__) == 4
        record_choice("parallel", True, lambda: (False, True))
        begin_kernel("other")
    rows, parallel = choices["mm"]
    assert (rows.name, rows.taken.value, rows.taken.cost) == ("rows", "4", 1.0)
    assert [o.value for o in rows.others] == ["2", "8"]
    assert rows.second is not None
    assert (rows.second.value, rows.second.cost) == ("8", 1.5)
    assert parallel.second is None
    assert choices["other"] == []


def test_the_register_tile_costs_least() -> None:
    target = resolve_target("x86-64-v4")
    with recorded_choices() as choices:
        begin_kernel("mm")
        schedule_func(matmul(), frozenset("B"), target)  # type: ignore[arg-type]
    known = {c.name.partition(".")[2]: c for c in choices["mm"] if c.taken.cost is not None}
    assert {"nr_vectors", "mr"} <= known.keys()
    for choice in known.values():
        assert all(choice.taken.cost <= o.cost for o in choice.others)  # type: ignore[operator]


def test_tiles_of_tensor_cores_are_spelled_with_their_times() -> None:
    ((func, constants),) = sources(dense(512, 512, 512))
    with recorded_choices() as choices:
        begin_kernel("mm")
        schedule_for_gpu(func, constants, H200)
    tile = next(c for c in choices["mm"] if c.name.endswith(".tile"))
    assert "stages, data_parallel" in tile.taken.value
    assert tile.second is not None
    assert tile.second.cost >= tile.taken.cost  # type: ignore[operator]
    assert len({o.value for o in tile.others}) == len(tile.others)
