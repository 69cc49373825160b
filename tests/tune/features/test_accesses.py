from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.schedule.programs import conv, dense, softmax
from tilewright.arith.evaluate import evaluate
from tilewright.arith.walk import loads, substitute
from tilewright.ir.loop.nodes import Block, For, Func, Store
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import buffers, statements
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.schedule import Schedule
from tilewright.target.registry import CPUS
from tilewright.tune.features.accesses import Statement, StatementAccess, statements_of

TARGET = CPUS["aarch64"]


def _nest(func: Func) -> list[Statement]:
    return statements_of(func, buffers(func))


def _access(s: Statement, name: str) -> StatementAccess:
    return next(a for a in s.accesses if a.buffer == name)


def test_a_tiled_product() -> None:
    sch = Schedule(dense(16, 24, 32))
    sch.inline("add")
    sch.split("mm.i0", [None, 4])
    sch.split("mm.i1", [None, 8])
    sch.reorder("mm.i0.0", "mm.i1.0", "mm.r0", "mm.i0.1", "mm.i1.1")
    sch.unroll("mm.i0.1")
    sch.vectorize("mm.i1.1")
    sch.parallel("mm.i0.0")
    product, last = _nest(sch.func)
    assert product.extents == (4, 3, 32, 4, 8)
    assert product.kinds == ("parallel", "serial", "serial", "unroll", "vectorize")
    assert product.body == 3
    assert product.has_init
    assert product.flops == 2
    assert (product.task, product.forks) == ("mm.i0.0", 1)
    x, w, mm = (_access(product, name) for name in ("x", "w", "mm"))
    assert x.elements == (512, 128, 128, 4, 1, 1)
    assert x.lines == (32, 8, 8, 4, 1, 1)
    assert x.row == (32, 8, 8, 1, 1, 1)  # whole rows of 32 elements lie one behind the other
    assert w.row == (48, 48, 1, 1, 1, 1)
    assert x.steps == (128, 0, 1, 32, 0)
    assert w.elements == (768, 768, 256, 8, 8, 1)
    assert w.steps == (0, 8, 24, 0, 1)
    assert mm.elements == (384, 96, 32, 32, 8, 1)
    assert mm.accumulates
    assert not x.accumulates
    assert not last.has_init
    assert _access(last, "bias").elements == (24, 24, 1)


def test_what_lives_in_a_loop_is_as_small_as_there() -> None:
    scheduled = schedule_func(softmax(6, 40), frozenset(), TARGET).func
    for s in _nest(scheduled):
        for a in s.accesses:
            if a.buffer not in ("x", "y"):
                assert a.elements[0] == a.elements[1]
                assert a.steps[0] == 0
            if a.buffer == "e":
                assert a.elements[0] == 40


@pytest.mark.parametrize("func", [dense(12, 20, 9), conv(11, 5, 6)], ids=["dense", "conv"])
def test_elements_are_those_that_the_loops_touch(func: Func) -> None:
    """Counted by running the loops from each level, those outside standing at 0."""
    scheduled = schedule_func(func, frozenset({"w"}), TARGET).func
    found = iter(_nest(scheduled))
    shapes = {b.name: [evaluate(d, {}) for d in b.shape] for b in scheduled.params}
    for path, stmt in statements(scheduled.body):
        if not isinstance(stmt, Store):
            continue
        s = next(found)
        loops = [p for p in path if isinstance(p, For)]
        moving = [loop for loop in loops if evaluate(loop.extent, {}) > 1]
        for a in (a for a in s.accesses if a.buffer in shapes):
            for level in range(len(moving) + 1):
                touched = {
                    where
                    for where in _touched(path, stmt, a.buffer, loops, moving[level:])
                    if all(0 <= i < n for i, n in zip(where, shapes[a.buffer], strict=True))
                }
                assert len(touched) <= a.elements[level] <= 1.5 * len(touched) + 1


def _touched(
    path: tuple, store: Store, name: str, loops: list[For], running: list[For]
) -> Iterator[tuple[int, ...]]:
    bindings = {it.name: it.binding for p in path if isinstance(p, Block) for it in p.iters}
    uses = [load for load in (*loads(store.value), store.target) if load.buffer == name]
    for point in itertools.product(*(range(evaluate(loop.extent, {})) for loop in running)):
        env = {loop.name: 0 for loop in loops}
        env.update({loop.name: at for loop, at in zip(running, point, strict=True)})
        for load in uses:
            yield tuple(evaluate(substitute(i, bindings), env) for i in load.indices)


def test_tiles_count_as_their_loops() -> None:
    func = parse_func(
        """
        func @f(a: f32[8, 4], b: f32[4, 16], out c: f32[8, 16]) {
          for i in serial(2) {
            tile mma c[i * 4 : 4, 0 : 16] <- a[i * 4 : 4, 0 : 4], b[0 : 4, 0 : 16]
          }
        }
        """
    )
    (s,) = _nest(func)
    assert s.intrinsic
    assert s.extents == (2, 4, 16, 4)
    assert s.body == 1
    assert _access(s, "b").elements[0] == 64
    assert _access(s, "c").elements[:2] == (128, 64)


def test_no_loops_and_symbolic_sizes() -> None:
    (s,) = _nest(parse_func("func @f(x: f32[4], out y: f32[4]) { y[1] = x[2] }"))
    assert (s.extents, s.runs, s.body) == ((), 1, 0)
    assert [a.elements for a in s.accesses] == [(1,), (1,)]
    assert {e for s in _nest(dense()) for e in s.extents} == {64}


def test_what_is_kept_inside_along_the_vector_may_be_anywhere() -> None:
    text = """
        func @f(x: f32[8, 10], out y: f32[8, 12]) {{
          for i in serial(8) {{ for j in vectorize(12) {{ y[i, j] = x[{row}, {column}] }} }}
        }}
        """
    for row, column, expected in (
        ("i", "j", False),
        ("i", "min(j, 9)", True),
        ("min(i, 6)", "j", False),
        ("i", "max(j * 2 - 1, 0) % 10", True),
    ):
        (s,) = _nest(parse_func(text.format(row=row, column=column)))
        assert _access(s, "x").clamped is expected
        assert not _access(s, "y").clamped
