from __future__ import annotations

from tests.schedule.programs import dense, func_of, refused, softmax
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import find_block, find_loop
from tilewright.schedule.analysis.dataflow import (
    allocation,
    check_order,
    early_reads,
    has_independent_iterations,
    only_buffer,
    read,
    readers,
    writers,
    written,
)


def _names(spines) -> list[str]:
    return [s[-1].name for s in spines if isinstance(s[-1], Block)]


def test_readers_and_writers() -> None:
    func = softmax()
    assert _names(readers(func, "e")) == ["s", "y"]
    assert _names(writers(func, "e")) == ["e"]
    assert read(find_block(func, "s")) == {"e"}
    assert written(find_block(func, "s")) == {"s"}


def test_stores_and_tiles_count_too() -> None:
    func = func_of(
        """
        func @f(a: f32[4], out y: f32[4]) {
          alloc t: f32[4]
          tile copy t[0 : 4] <- a[0 : 4]
          y[0] = t[0]
        }
        """
    )
    assert len(writers(func, "t")) == 1
    assert len(readers(func, "t")) == 1


def test_only_buffer() -> None:
    func = func_of(
        """
        func @f(out y: f32[4], out z: f32[4]) {
          block "both" [] writes y[0], z[0] {
            y[0] = 1.0
            z[0] = 1.0
          }
          block "again" [] writes y[1] { y[1] = 1.0 }
        }
        """
    )
    refused("step.buffers", only_buffer, func, find_block(func, "both"), "step")
    refused("step.writers", only_buffer, func, find_block(func, "again"), "step")
    func = dense()
    assert only_buffer(func, find_block(func, "mm"), "step") == "mm"


def test_allocations() -> None:
    assert allocation(dense(), "mm", "step")[-1].buffer.name == "mm"
    assert "a parameter" in refused("step.allocation", allocation, dense(), "x", "step")
    assert "not a buffer" in refused("step.allocation", allocation, dense(), "no", "step")


def test_independent_iterations() -> None:
    func = func_of("""
    func @f(a: f32[4, 8], out y: f32[4], out z: f32[8]) {
      for i in serial(4) {
        for j in serial(8) {
          block "y" [vi: S(4) = i, vj: R(8) = j] reads a[vi, vj] writes y[vi]
            init { y[vi] = 0.0 }
            { y[vi] += a[vi, vj] }
          block "z" [wi: R(4) = i, wj: S(8) = j] reads a[wi, wj] writes z[wj]
            init { z[wj] = 0.0 }
            { z[wj] += a[wi, wj] }
        }
      }
    }""")
    assert not has_independent_iterations(find_loop(func, "i"))
    assert not has_independent_iterations(find_loop(func, "j"))
    assert has_independent_iterations(find_loop(dense(), "mm.i0"))


def test_order() -> None:
    good = func_of(_chain("t", "y"))
    bad = func_of(_chain("y", "t"))
    assert not early_reads(good)
    assert set(early_reads(bad)) == {("y", "t", "t")}
    check_order(good, good, "step")
    check_order(bad, bad, "step")
    refused("step.order", check_order, good, bad, "step")


def _chain(*order: str) -> str:
    lines = {
        "t": 'block "t" [v: S(4) = i] reads a[v] writes t[v] { t[v] = a[v] }',
        "y": 'block "y" [v: S(4) = i] reads t[v] writes y[v] { y[v] = t[v] }',
    }
    nests = (lines[name].replace("= i]", f"= {name}.i]") for name in order)
    body = "".join(
        f"for {name}.i in serial(4) {{ {nest} }}\n" for name, nest in zip(order, nests, strict=True)
    )
    return f"func @f(a: f32[4], out y: f32[4]) {{ alloc t: f32[4] {body} }}"
