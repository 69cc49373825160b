"""What is emitted for a GPU, run by threads of this machine: one for each thread of a block.

    launch(text, "softmax", grid=4, threads=128, arguments=[...])

The text is that of the GPU but for its intrinsics: numbers of threads and blocks are variables of
each thread, a barrier is one of the C library, shared memory is a global variable, since blocks run
one after another. A barrier that is missing shows as a wrong result, sooner or later.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from string import Template

import llvmlite.binding as llvm
import numpy as np

from tests.codegen.gpu.host_tma import matrix
from tests.codegen.gpu.host_warps import forget_copies, warp_text
from tests.codegen.native_func import sizes_of
from tilewright.arith.evaluate import evaluate
from tilewright.codegen.gpu.allreduce import BUTTERFLY, INDEX, UP
from tilewright.codegen.gpu.grid_sync import TEXTS
from tilewright.codegen.gpu.launches import TensorMap, launches
from tilewright.codegen.gpu.nvptx import BLOCK_INDEX, THREAD_INDEX, emit_launches
from tilewright.codegen.gpu.synchronization import AWAIT, BARRIER, SIGNAL
from tilewright.codegen.gpu.synchronization import TEXTS as FLAGS
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import optimize, target_machine
from tilewright.ir.loop.nodes import Func
from tilewright.runtime.host_memory import address
from tilewright.target.host import host

MAX_ARGUMENTS = 24

_RUN = Template("""
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_barrier_init(ptr, ptr, i32)
declare i32 @pthread_barrier_wait(ptr)
declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_setspecific(i32, ptr)
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_key_delete(i32)
@tw.thread = global i32 0
@tw.block = global i32 0
@tw.barrier = global [64 x i8] zeroinitializer, align 16
@tw.exchanged = global [32 x [64 x i8]] zeroinitializer, align 16
@tw.arguments = global [$most x i64] zeroinitializer
@tw.threads = global [1024 x i64] zeroinitializer

define internal i32 @tw.thread.number() noinline {
  %key = load i32, ptr @tw.thread
  %own = call ptr @pthread_getspecific(i32 %key)
  %wide = ptrtoint ptr %own to i64
  %n = trunc i64 %wide to i32
  ret i32 %n
}
define internal i32 @tw.block.number() noinline {
  %n = load volatile i32, ptr @tw.block
  ret i32 %n
}
define internal void @tw.wait(i32 %which) noinline {
  %s = call i32 @pthread_barrier_wait(ptr @tw.barrier)
  ret void
}
@tw.exchange = global [1024 x i32] zeroinitializer
$shuffles
define ptr @tw.body(ptr %number) {
  %key = load i32, ptr @tw.thread
  %s = call i32 @pthread_setspecific(i32 %key, ptr %number)
$loads
  call void @$kernel($arguments)
  ret ptr null
}
; Threads that never wait may as well run one after another.
define void @tw.run.alone(i64 %grid, i64 %threads) {
entry:
  %k = call i32 @pthread_key_create(ptr @tw.thread, ptr null)
  br label %block
block:
  %b = phi i64 [ 0, %entry ], [ %b.next, %next ]
  %more = icmp ult i64 %b, %grid
  br i1 %more, label %begin, label %done
begin:
  %b32 = trunc i64 %b to i32
  store volatile i32 %b32, ptr @tw.block
  br label %thread
thread:
  %t = phi i64 [ 0, %begin ], [ %t.next, %thread ]
  %number = inttoptr i64 %t to ptr
  %r = call ptr @tw.body(ptr %number)
  %t.next = add i64 %t, 1
  %left = icmp ult i64 %t.next, %threads
  br i1 %left, label %thread, label %next
next:
  %b.next = add i64 %b, 1
  br label %block
done:
  %key = load i32, ptr @tw.thread
  %d = call i32 @pthread_key_delete(i32 %key)
  store i32 0, ptr @tw.thread
  ret void
}
define void @tw.run(i64 %grid, i64 %threads) {
entry:
  %count = trunc i64 %threads to i32
  %known = load i32, ptr @tw.thread
  %first = icmp eq i32 %known, 0
  br i1 %first, label %create, label %ready
create:
  %k = call i32 @pthread_key_create(ptr @tw.thread, ptr null)
  br label %ready
ready:
  %s = call i32 @pthread_barrier_init(ptr @tw.barrier, ptr null, i32 %count)
  br label %warp
; The threads of a warp exchange words: 32, or as many as are left.
warp:
  %w = phi i32 [ 0, %ready ], [ %w.next, %warp ]
  %met = getelementptr [64 x i8], ptr @tw.exchanged, i32 %w
  %before = mul i32 %w, 32
  %others = sub i32 %count, %before
  %few = icmp ult i32 %others, 32
  %size = select i1 %few, i32 %others, i32 32
  %e = call i32 @pthread_barrier_init(ptr %met, ptr null, i32 %size)
  %w.next = add i32 %w, 1
  %after = mul i32 %w.next, 32
  %another = icmp ult i32 %after, %count
  br i1 %another, label %warp, label %begun
begun:
  br label %block
block:
  %b = phi i64 [ 0, %begun ], [ %b.next, %joined ]
  %more = icmp ult i64 %b, %grid
  br i1 %more, label %begin, label %done
begin:
  %b32 = trunc i64 %b to i32
  store volatile i32 %b32, ptr @tw.block
  br label %start
start:
  %t = phi i64 [ 0, %begin ], [ %t.next, %start ]
  %slot = getelementptr i64, ptr @tw.threads, i64 %t
  %number = inttoptr i64 %t to ptr
  %c = call i32 @pthread_create(ptr %slot, ptr null, ptr @tw.body, ptr %number)
  %t.next = add i64 %t, 1
  %left = icmp ult i64 %t.next, %threads
  br i1 %left, label %start, label %join
join:
  %j = phi i64 [ 0, %start ], [ %j.next, %join ]
  %handle = getelementptr i64, ptr @tw.threads, i64 %j
  %id = load i64, ptr %handle
  %r = call i32 @pthread_join(i64 %id, ptr null)
  %j.next = add i64 %j, 1
  %waits = icmp ult i64 %j.next, %threads
  br i1 %waits, label %join, label %joined
joined:
  %b.next = add i64 %b, 1
  br label %block
done:
  ret void
}
""")

# Which lane of a group a thread reads: `%g` is its own place in it, the group begins at `%s`.
_SHUFFLES = {
    BUTTERFLY: ("tw.shuffle", "%other = xor i32 %own, %lane"),
    UP: (
        "tw.shuffle.up",
        "%enough = icmp uge i32 %g, %lane\n"
        "  %back = select i1 %enough, i32 %lane, i32 0\n  %other = sub i32 %own, %back",
    ),
    INDEX: (
        "tw.shuffle.index",
        "%within = and i32 %lane, %last\n  %other = add i32 %start, %within",
    ),
}
_SHUFFLE = Template("""
define internal i32 @$name(i32 %mask, i32 %value, i32 %lane, i32 %groups) noinline {
  %own = call i32 @tw.thread.number()
  %place = getelementptr i32, ptr @tw.exchange, i32 %own
  store volatile i32 %value, ptr %place
  %fixed = lshr i32 %groups, 8
  %last = sub i32 31, %fixed
  %g = and i32 %own, %last
  %start = sub i32 %own, %g
  %warp = lshr i32 %own, 5
  %met = getelementptr [64 x i8], ptr @tw.exchanged, i32 %warp
  %s = call i32 @pthread_barrier_wait(ptr %met)
  $other
  %from = getelementptr i32, ptr @tw.exchange, i32 %other
  %found = load volatile i32, ptr %from
  %e = call i32 @pthread_barrier_wait(ptr %met)
  ret i32 %found
}""")

# GPUs round to bf16 by an instruction. Where the host has none, LLVM calls this function of a
# compiler's library, which the process need not have: the address would be 0.
_TO_BF16 = """
define bfloat @__truncsfbf2(float %a) noinline {
  %bits = bitcast float %a to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %rounded = add i32 %bits, %half
  %quiet = or i32 %bits, 4194304
  %is_nan = fcmp uno float %a, %a
  %chosen = select i1 %is_nan, i32 %quiet, i32 %rounded
  %top = lshr i32 %chosen, 16
  %short = trunc i32 %top to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
"""

# Blocks run one after another, and what is waited for must be there.
_FLAGS = {
    SIGNAL: f"""
define internal void @{SIGNAL}(ptr %said, i32 %lane) noinline {{
  store volatile i32 1, ptr %said
  ret void
}}
""",
    AWAIT: f"""
declare void @llvm.trap()
define internal void @{AWAIT}(ptr %said, i32 %count) noinline {{
  %found = load volatile i32, ptr %said
  %missing = icmp ult i32 %found, %count
  br i1 %missing, label %never, label %there
never:
  call void @llvm.trap()
  unreachable
there:
  ret void
}}
""",
}


def host_text(text: str, kernel: str) -> str:
    """A module for a GPU as one for this machine, with `tw.run` for one of its kernels."""
    for name, own in (
        (THREAD_INDEX, "tw.thread.number"),
        (BLOCK_INDEX, "tw.block.number"),
        (BARRIER, "tw.wait"),
        *((name, own) for name, (own, _) in _SHUFFLES.items()),
    ):
        text = re.sub(rf"^declare [^\n]*@{re.escape(name)}\([^\n]*\n", "", text, flags=re.M)
        text = text.replace(f"@{name}(", f"@{own}(")
    text = re.sub(r"\n[^\n]*(griddepcontrol|prefetch.tensormap)[^\n]*", "", text)
    for body in TEXTS.values():
        head = body.strip().splitlines()[0]
        text = text.replace(body.strip(), f"{head}\n  ret void\n}}")  # one block waits for none
    for name, own in _FLAGS.items():
        text = text.replace(FLAGS[name].strip(), own.strip())
    text = re.sub(r"addrspacecast \(ptr addrspace\(3\) (@[\w.$]+) to ptr\)", r"\1", text)
    text = warp_text(text).replace("ptx_kernel ", "")
    found = re.search(rf"define void @{re.escape(kernel)}\(([^)]*)\)", text)
    assert found is not None, kernel
    kinds = [p.split()[0] for p in found[1].split(", ")]
    loads = "\n".join(
        f"  %p{i} = getelementptr i64, ptr @tw.arguments, i64 {i}\n"
        f"  %a{i} = load {kind}, ptr %p{i}, align 8"
        for i, kind in enumerate(kinds)
    )
    arguments = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    shuffles = "".join(_SHUFFLE.substitute(name=n, other=o) for n, o in _SHUFFLES.values())
    run = _RUN.substitute(
        most=MAX_ARGUMENTS, loads=loads, arguments=arguments, kernel=kernel, shuffles=shuffles
    )
    return text + run + _TO_BF16


@cache
def _loaded(text: str, kernel: str) -> tuple[llvm.ExecutionEngine, int, int]:
    machine = target_machine(host())
    module = optimize(host_text(text, kernel), machine, host())
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    body = _function(text, kernel)
    waits = any(f"@{name}(" in body for name in (BARRIER, *_SHUFFLES))
    entry = "tw.run" if waits else "tw.run.alone"
    arguments = engine.get_global_value_address("tw.arguments")
    return engine, engine.get_function_address(entry), arguments


def _function(text: str, kernel: str) -> str:
    start = text.index(f"@{kernel}(")
    return text[start : text.index("\n}", start)]


def launch(text: str, kernel: str, grid: int, threads: int, arguments: Sequence[int]) -> None:
    """Run one launch; `arguments` are addresses and sizes."""
    _, run, place = _loaded(text, kernel)
    forget_copies()
    (ctypes.c_int64 * len(arguments)).from_address(place)[:] = list(arguments)
    ctypes.CFUNCTYPE(None, *(ctypes.c_int64,) * 2)(run)(grid, threads)


def run_launches(func: Func, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> None:
    """Run a finalized function launch by launch on flat arrays, which it writes."""
    names = sizes_of(func)
    module = ModuleBuilder(masks_vectors=False)
    emit_launches(module, func, names)
    arguments = [address(arrays[p.name]) for p in func.params] + [sizes[n] for n in names]
    for _, group in groupby(launches(func), key=lambda x: x.loop):
        together = list(group)
        for step in range(evaluate(together[0].steps, sizes)):
            for x in together:
                grid = evaluate(x.grid, sizes)
                if grid:
                    assert grid == 1 or not x.cooperative_launch, "blocks run one after another"
                    maps = [_matrix(m, arguments, sizes) for m in x.maps]
                    given = [*arguments, *map(address, maps), step]
                    launch(module.text(), x.name, grid, x.threads, given)


def _matrix(m: TensorMap, arguments: Sequence[int], sizes: Mapping[str, int]) -> np.ndarray:
    return matrix(arguments[m.number], [evaluate(e, sizes) for e in m.shape], m.box)
