from __future__ import annotations

from tests.schedule.programs import dense, func_of
from tilewright.arith.isl import ParamSpace
from tilewright.schedule.legality.instances import Instances, places
from tilewright.schedule.schedule import Schedule


def _instances(func, width: int = 4) -> Instances:
    return Instances(places(func), ParamSpace(("K", "M", "N")), width)


def test_places() -> None:
    found = places(dense())
    assert list(found) == ["mm", "add", "y"]
    assert found["mm"].positions == (0, 0, 0, 0)
    assert found["y"].positions == (2, 0, 0)
    assert [f.name for f in found["add"].loops] == ["add.i0", "add.i1"]


def test_branches_and_allocations_take_no_time() -> None:
    func = func_of(
        """
        func @f(out y: f32[4]) {
          alloc t: f32[4]
          if 1 < 2 { block "a" [] writes t[0] { t[0] = 1.0 } }
          { alloc u: f32[1]
            block "b" [] reads t[0] writes y[0] { y[0] = t[0] } }
          y[1] = 0.0
          block "c" [] writes y[2] { y[2] = 0.0 }
        }
        """
    )
    assert {name: p.positions for name, p in places(func).items()} == {
        "a": (0,),
        "b": (1,),
        "c": (3,),
    }


def test_accesses_of_buffers_that_are_written() -> None:
    touched = _instances(dense()).accesses()
    assert set(touched) == {"mm", "add", "y"}
    assert [(p.block.name, a.writes, a.carried) for p, a in touched["mm"]] == [
        ("mm", True, True),
        ("add", False, False),
    ]


def test_dependent_instances() -> None:
    instances = _instances(dense())
    (mm, write), (add, read) = instances.accesses()["mm"]
    assert not instances.dependent(mm, write, add, read).is_empty()
    assert instances.dependent(add, read, mm, write).is_empty()
    assert instances.never_before(add, mm)
    assert not instances.never_before(mm, add)


def test_what_runs_again_has_a_first_time() -> None:
    sch = Schedule(dense())
    sch.cache_read("mm", "w", "local")
    sch.compute_at("w.local", "mm.i0")
    instances = _instances(sch.func, 5)
    copy = instances.places["w.local"]
    assert not (instances.time(copy) - instances.first_time(copy)).is_empty()
    assert [f.name for f in instances.shared_loops(copy, instances.places["mm"])] == ["mm.i0"]
