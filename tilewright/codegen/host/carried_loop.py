"""The native loop of a nested graph, with double-buffered loop-carried values.

Each carried value has two buffers: an iteration reads one and writes the other, then they are
swapped, so that nothing is copied. The first iteration reads the initial value in place. The buffer
that is written first is chosen such that the last iteration writes the buffer of the result; where
the trip count is not known in advance, or is zero, the value is copied there at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.codegen.llvm.builder import FunctionBuilder


@dataclass(frozen=True)
class Buffers:
    """The registers with the addresses of a carried value's buffers, and with its size in bytes."""

    initial: str
    result: str
    spare: str
    size: str


# Emits an iteration, given its number and the addresses that it reads and writes for each carried
# value. Returns the register with the loop condition, "" if there is none.
EmitStep = Callable[[str, Sequence[str], Sequence[str]], str]


def emit_carried_loop(
    fn: FunctionBuilder,
    count: str,
    begin: str,
    known: bool,
    carried: Sequence[Buffers],
    step: EmitStep,
) -> str:
    """Emit a loop of at most `count` iterations; the register with the actual trip count.

    `begin` is the register with the condition of the first iteration. The trip count is `known` if
    no condition ends the loop early.
    """
    firsts = _first_buffers(fn, count, known, carried)
    before, head, body, done = fn.block, *(fn.label(word) for word in ("head", "body", "done"))
    fn.emit(f"br label %{head}")
    number, following = fn.fresh("step"), fn.fresh("step")
    going = "true" if known else fn.fresh("going")
    latch, further = fn.label("latch"), fn.fresh("going")
    reads, writes = ([fn.fresh(word) for _ in carried] for word in ("read", "written"))
    nexts = [fn.fresh("next") for _ in carried]
    fn.start(head)
    fn.emit(f"{number} = phi i64 [ 0, %{before} ], [ {following}, %{latch} ]")
    for b, first, read, written, after in zip(carried, firsts, reads, writes, nexts, strict=True):
        fn.emit(f"{read} = phi ptr [ {b.initial}, %{before} ], [ {written}, %{latch} ]")
        fn.emit(f"{written} = phi ptr [ {first}, %{before} ], [ {after}, %{latch} ]")
    if not known:
        fn.emit(f"{going} = phi i1 [ {begin}, %{before} ], [ {further}, %{latch} ]")
    left = fn.let(f"icmp slt i64 {number}, {count}")
    fn.emit(f"br i1 {fn.let(f'and i1 {left}, {going}')}, label %{body}, label %{done}")
    fn.start(body)
    with fn.scope():
        goes_on = step(number, reads, writes)
    fn.emit(f"br label %{latch}")
    fn.start(latch)
    fn.emit(f"{following} = add i64 {number}, 1")
    if not known:
        fn.emit(f"{further} = and i1 {goes_on or 'true'}, true")
    for b, written, after in zip(carried, writes, nexts, strict=True):
        other = fn.let(f"icmp eq ptr {written}, {b.result}")
        fn.emit(f"{after} = select i1 {other}, ptr {b.spare}, ptr {b.result}")
    fn.emit(f"br label %{head}")
    fn.start(done)
    for b, read in zip(carried, reads, strict=True):
        _copy_to_result(fn, b, read)
    return number


def _first_buffers(
    fn: FunctionBuilder, count: str, known: bool, carried: Sequence[Buffers]
) -> list[str]:
    """The buffers that the first iteration writes: the result's, if the trip count is odd."""
    if not carried or not known:
        return [b.result for b in carried]
    odd = fn.let(f"trunc i64 {count} to i1")
    return [fn.let(f"select i1 {odd}, ptr {b.result}, ptr {b.spare}") for b in carried]


def _copy_to_result(fn: FunctionBuilder, b: Buffers, last: str) -> None:
    """Copy the last value to the buffer of the result, unless it is there."""
    fn.module.declare("memcpy", "ptr (ptr, ptr, i64)")
    away, home = fn.label("away"), fn.label("home")
    same = fn.let(f"icmp eq ptr {last}, {b.result}")
    fn.emit(f"br i1 {same}, label %{home}, label %{away}")
    fn.start(away)
    fn.let(f"call ptr @memcpy(ptr {b.result}, ptr {last}, i64 {b.size})")
    fn.emit(f"br label %{home}")
    fn.start(home)
