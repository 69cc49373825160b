from __future__ import annotations

from dataclasses import replace

from tests.schedule.programs import dense, func_of, matmul, refused
from tilewright.arith.expr import TRUE, Var, const
from tilewright.ir.loop.nodes import Alloc, Block, For, If, Seq, Store
from tilewright.ir.loop.text import print_func, print_stmt
from tilewright.schedule.tree import (
    block_spine,
    check_block_free,
    check_loop_free,
    extents_of,
    inserted_after,
    inserted_before,
    leaf_spines,
    leaves,
    loop_spine,
    loops_of,
    outermost,
    replaced,
    target_block,
    target_loop,
    with_loops,
)


def test_spines() -> None:
    func = dense()
    spine = block_spine(func, "add")
    assert [f.name for f in loops_of(spine)] == ["add.i0", "add.i1"]
    assert extents_of(spine[:-1]) == {"add.i0": Var("M"), "add.i1": Var("N")}
    assert target_block(spine).name == "add"
    assert target_loop(outermost(spine)).name == "add.i0"
    assert target_loop(loop_spine(func, "add.i1")).name == "add.i1"
    assert [s[-1] for s in leaf_spines(func.body)] == list(leaves(func.body))


def test_replacing_keeps_everything_else() -> None:
    func = dense()
    spine = loop_spine(func, "add.i1")
    assert replaced(func, spine, spine[-1]) == func
    changed = replaced(func, spine, replace(target_loop(spine), kind="parallel"))
    assert print_func(changed) == print_func(func).replace(
        "for add.i1 in serial", "for add.i1 in parallel"
    )


def test_removing_takes_along_what_it_empties() -> None:
    func = dense()
    for name in ("mm", "add", "y"):
        func = replaced(func, block_spine(func, name), None)
    assert func.body == Seq(())


def test_removing_a_branch() -> None:
    func = func_of("func @f(out y: f32[2]) { if 1 < 2 { y[0] = 1.0 } else { y[1] = 2.0 } }")
    branch = func.body
    assert isinstance(branch, If)
    assert branch.orelse is not None
    assert replaced(func, (branch, branch.orelse), None).body == If(branch.cond, branch.then)
    kept = replaced(func, (branch, branch.then), None).body
    assert kept == If(branch.cond, Seq(()), branch.orelse)


def test_inserting() -> None:
    func = matmul()
    store = Store("y", (const(0), const(0)), const(1.0, func.params[0].dtype))
    spine = loop_spine(func, "y.r0")
    assert [type(s) for s in inserted_before(func, spine, store).body.body.body.stmts] == [
        Store,
        For,
    ]
    assert [type(s) for s in inserted_after(func, spine, store).body.body.body.stmts] == [
        For,
        Store,
    ]


def test_loop_variables_are_replaced_and_guards_added() -> None:
    func = func_of(
        """
        func @f(out y: f32[8]) {
          for i in serial(8) {
            y[i] = 0.0
            for j in serial(i + 1) {
              block "y" [v: S(8) = i + j * 0] writes y[v] { y[v] = 1.0 }
            }
          }
        }
        """
    )
    loop = func.body
    assert isinstance(loop, For)
    i = Var("a") * 2 + Var("b")
    found = with_loops(loop.body, {"i": i}, {"a": const(4), "b": const(2)}, i < 8)
    assert "if a * 2 + b < 8 {" in print_stmt(found)
    assert "for j in serial(a * 2 + b + 1)" in print_stmt(found)
    assert "where a * 2 + b < 8" in print_stmt(found)
    same = with_loops(loop.body, {}, {}, TRUE)
    assert same == loop.body


def test_taken_names() -> None:
    func = dense()
    check_loop_free(func, "new")
    check_block_free(func, "new")
    refused("schedule.name-taken", check_loop_free, func, "new", "mm.i0")
    refused("schedule.name-taken", check_block_free, func, "mm")


def test_names_that_do_not_exist() -> None:
    refused("schedule.no-loop", loop_spine, dense(), "z")
    refused("schedule.no-block", block_spine, dense(), "z")
    assert isinstance(dense().body, Alloc | Seq | Block)
