from __future__ import annotations

import numpy as np

from tests.codegen.native_func import NativeFunc, both, llvm_text
from tests.for_each import for_each
from tilewright.arith.expr import Expr, Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.codegen.llvm.available_loads import AvailableLoads, Reads
from tilewright.core.dtypes import BOOL, F32, DType
from tilewright.ir.loop.nodes import Store
from tilewright.ir.loop.text import parse_func

I = Var("i")  # noqa: E741


def _at(buffer: str, index: Expr | int, dtype: DType = F32) -> Load:
    return Load(buffer, (const(index) if isinstance(index, int) else index,), dtype)


def _vector(buffer: str, start: int) -> Load:
    return _at(buffer, Ramp(const(start), 1, 4))


def _store(target: Load, mask: Expr | None = None) -> Store:
    return Store(target.buffer, target.indices, const(0, target.dtype), mask)


@for_each(
    ("e", "reads"),
    [
        (I + 1, Reads.NOTHING),
        (_at("x", I) + 1.0, Reads.SHARED),
        (_at("x", I) + _at("acc", 0), Reads.STACK),
        (_at("x", Load("acc", (I,), I.dtype)), Reads.STACK),
    ],
)
def test_what_expressions_read(e: Expr, reads: Reads) -> None:
    assert AvailableLoads({"acc"}).reads(e) == reads


def test_a_store_to_the_stack_changes_nothing_else() -> None:
    known = AvailableLoads({"acc", "other"})
    shared, own, beside = _at("x", I) * 2.0, _vector("acc", 4), _vector("other", 0)
    for n, e in enumerate((shared, own, beside)):
        known.keep(e, f"%{n}")
    known.stored(_store(_vector("acc", 0)), "%new")
    known.begin_statement()
    assert [known.find(e) for e in (shared, own, beside)] == ["%0", "%1", "%2"]
    assert known.find(_vector("acc", 0)) == "%new"


@for_each("place", [_vector("acc", 2), _vector("acc", 7), _at("acc", 5)])
def test_what_overlaps_is_forgotten(place: Load) -> None:
    known = AvailableLoads({"acc"})
    known.keep(place, "%old")
    known.stored(_store(_vector("acc", 4)), "%new")
    assert known.find(place) is None


def test_a_store_at_an_unknown_place_is_a_store_anywhere() -> None:
    known = AvailableLoads({"acc"})
    known.keep(_vector("acc", 0), "%0")
    known.stored(_store(_at("acc", I)), "%1")
    assert known.find(_vector("acc", 0)) is None
    assert known.find(_at("acc", I)) is None


def test_any_other_store_may_change_whatever_is_not_on_the_stack() -> None:
    known = AvailableLoads({"acc"})
    known.keep(_at("x", I), "%0")
    known.keep(_vector("acc", 0), "%1")
    known.stored(_store(_at("y", I)), "%2")
    assert known.find(_at("x", I)) is None
    assert known.find(_at("y", I)) is None
    assert known.find(_vector("acc", 0)) == "%1"
    known.forget()
    assert known.find(_vector("acc", 0)) is None


def test_what_is_stored_in_part_or_in_another_form_is_not_known() -> None:
    known = AvailableLoads({"acc"})
    known.stored(_store(_vector("acc", 0), I < 3), "%0")
    assert known.find(_vector("acc", 0)) is None
    known.stored(_store(_at("acc", 0, BOOL)), "%1")
    assert known.find(_at("acc", 0, BOOL)) is None


def test_expressions_of_own_buffers_live_for_a_statement() -> None:
    known = AvailableLoads({"acc"})
    total = _at("acc", 0) + _at("x", I)
    known.keep(total, "%0")
    assert known.find(total) == "%0"
    known.begin_statement()
    assert known.find(total) is None


TILE = """func @f(x: f32[8], out y: f32[8]) {
  alloc acc: f32[4] @local
  seq {
    acc[0] = x[0]
    acc[1] = x[0] + 1.0
    acc[0] += acc[1] + x[0]
    y[0] = acc[0]
    y[1] = x[0] + acc[1]
  }
}"""


def test_nothing_is_loaded_twice_in_vain() -> None:
    # x[0] once, and again after y was written, which may be the same memory.
    assert llvm_text(parse_func(TILE)).count(" load ") == 2


def test_an_output_that_is_an_input_is_read_again() -> None:
    native = NativeFunc(parse_func(TILE))
    x = np.arange(1, 9, dtype=np.float32)
    native({"x": x, "y": x})
    assert list(x[:2]) == [4.0, 6.0]
    native.close()


def test_iterations_and_branches_know_nothing_of_each_other() -> None:
    func = parse_func("""func @f(x: f32[N], out y: f32[N]) {
  alloc acc: f32[2] @local
  seq {
    acc[0] = 0.0
    for i in serial(N) {
      acc[0] += x[i]
      if 2 < i { acc[1] = x[i] } else { acc[1] = acc[0] }
      y[i] = acc[0] + acc[1]
    }
  }
}""")
    x = np.arange(6, dtype=np.float32) + 1
    native, interpreted = both(func, {"x": x, "y": np.zeros(6, np.float32)}, {"N": 6})
    np.testing.assert_array_equal(native["y"], interpreted["y"])
