"""The native loop around the steps of a nested graph, and the buffers of what it carries.

Each carried value has two buffers: a step reads one and writes the other, and then they change
places, so that nothing is copied. The first step reads the value where it lies already. Which
buffer is written first is chosen such that the last step writes the one where the result belongs;
where the number of steps is not known before, or is zero, the result is copied there.
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


# Given the step's number, and the addresses that it reads and writes for each carried value, emits
# the step and returns the register that says whether to go on, "" if that is not asked.
EmitStep = Callable[[str, Sequence[str], Sequence[str]], str]


def emit_repeat(
    fn: FunctionBuilder,
    count: str,
    begin: str,
    known: bool,
    carried: Sequence[Buffers],
    step: EmitStep,
) -> str:
    """Emit a loop of `count` steps at most; gives the register with how many there were.

    `begin` is the register that says whether there are any. The number of steps is `known` if
    nothing ends them early.
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
        _bring_home(fn, b, read)
    return number


def _first_buffers(
    fn: FunctionBuilder, count: str, known: bool, carried: Sequence[Buffers]
) -> list[str]:
    """Where the first step writes: into the result, if an even number of steps follow."""
    if not carried or not known:
        return [b.result for b in carried]
    odd = fn.let(f"trunc i64 {count} to i1")
    return [fn.let(f"select i1 {odd}, ptr {b.result}, ptr {b.spare}") for b in carried]


def _bring_home(fn: FunctionBuilder, b: Buffers, last: str) -> None:
    """Copy a value that ended elsewhere to where its result belongs."""
    fn.module.declare("memcpy", "ptr (ptr, ptr, i64)")
    away, home = fn.label("away"), fn.label("home")
    same = fn.let(f"icmp eq ptr {last}, {b.result}")
    fn.emit(f"br i1 {same}, label %{home}, label %{away}")
    fn.start(away)
    fn.let(f"call ptr @memcpy(ptr {b.result}, ptr {last}, i64 {b.size})")
    fn.emit(f"br label %{home}")
    fn.start(home)
