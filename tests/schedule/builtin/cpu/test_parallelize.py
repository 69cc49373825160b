from __future__ import annotations

from tests.schedule.programs import matmul
from tilewright.schedule.builtin.cpu.parallelize import (
    PARALLEL_WORK,
    SEARCHED_GRAIN_FACTOR,
    fuse_parallel,
    is_parallel,
    load_imbalance,
)
from tilewright.schedule.schedule import Schedule


def test_much_is_shared_and_little_is_not() -> None:
    sch = Schedule(matmul())
    assert is_parallel(sch, "y", PARALLEL_WORK)
    assert not is_parallel(sch, "y", PARALLEL_WORK - 1)
    assert is_parallel(sch, "y", 9, 9)


def test_only_what_is_doubtful_is_asked() -> None:
    asked = {}

    def decide(name: str, default: object, options: tuple[object, ...]) -> object:
        asked[name] = options
        return options[0]

    sch = Schedule(matmul(), decide=decide)
    assert not is_parallel(sch, "near", PARALLEL_WORK * 2)
    assert is_parallel(sch, "far", PARALLEL_WORK * 2 * SEARCHED_GRAIN_FACTOR)
    assert asked == {"near.parallel": (False, True), "far.parallel": (True,)}


def test_some_or_all_loops_are_shared() -> None:
    sch = Schedule(matmul(8, 8, 8))
    fuse_parallel(sch, "y", ["y.i0", "y.i1"])
    assert str(sch.trace) == 'fuse("y.i0", "y.i1")\nparallel("y.i0_i1")\n'
    sch = Schedule(matmul(8, 8, 8), decide=lambda name, default, options: options[0])
    fuse_parallel(sch, "y", ["y.i0", "y.i1"])
    assert str(sch.trace) == 'parallel("y.i0")\n'


def test_cores_wait_for_the_last_task() -> None:
    assert [load_imbalance(n, 2) for n in (1, 2, 3, 4)] == [2.0, 1.0, 4 / 3, 1.0]
    assert load_imbalance(1, 1) == 1.0
    assert [load_imbalance(n, 2) for n in (31, 33)] == [32 / 31, 1.0]
