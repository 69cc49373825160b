"""Measure the roofs of this machine: multiply-adds a second in f32, bytes a second by cache level.

    python benchmarks/roofline.py [--threads 1,2] [--json roofs.json]

The kernels are LLVM IR, compiled here for the host: a loop of independent fused multiply-adds that
stay in registers (the arithmetic roof), reads of arrays that fill half of each cache, and reads,
copy and triad over arrays far larger than the caches (the memory roof). Copy counts two arrays
moved and triad three; the reads a store into a cold line causes are not counted. A call releases
Python's lock, so plain threads run at once.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tilewright.target.cpu import host

CHAINS = 12  # independent sums: more than latency times units, fewer than any host has registers
FMA_STEPS = 1_000_000  # milliseconds: short, so that some repeat meets no other process
REPEATS = 25
ARRAY_MIB = 256
READ_UNROLL = 8  # vectors a step
READ_BYTES = 1 << 26  # that one repeat reads, from however small an array

Kernel = Callable[..., None]


@dataclass(frozen=True)
class Roof:
    """One measured ceiling."""

    what: str
    threads: int
    best: float
    median: float
    unit: str


def fma_kernel(lanes: int) -> str:
    """LLVM text of `fma(steps, data)`: CHAINS sums `acc += x * y` kept in registers.

    The sums start from and go back to memory, each apart, so that none is merged or dropped; the
    sum is the addend, since AArch64's instruction adds to its destination.
    """
    vector, ids = f"<{lanes} x float>", range(CHAINS)
    fma = f"@llvm.fma.v{lanes}f32"
    lines = [f"declare {vector} {fma}({vector}, {vector}, {vector})"]
    lines += ["define void @fma(i64 %steps, ptr %data) {\nentry:"]
    for i in ids:
        lines.append(f"  %p{i} = getelementptr {vector}, ptr %data, i64 {i}")
        lines.append(f"  %start{i} = load {vector}, ptr %p{i}, align 4")
    lines += ["  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    lines += [f"  %a{i} = phi {vector} [ %start{i}, %entry ], [ %b{i}, %loop ]" for i in ids]
    factors = f"{vector} %start0, {vector} %start1"
    lines += [f"  %b{i} = call {vector} {fma}({factors}, {vector} %a{i})" for i in ids]
    lines += ["  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %steps"]
    lines += ["  br i1 %more, label %loop, label %done\ndone:"]
    lines += [f"  store {vector} %b{i}, ptr %p{i}, align 4" for i in ids]
    return "\n".join([*lines, "  ret void\n}"])


def stream_kernel(name: str, lanes: int, triad: bool) -> str:
    """LLVM text of `name(n, out, x, y)`: `out = x`, or with `triad` `out = x + 3 y`."""
    vector, unroll = f"<{lanes} x float>", 4
    lines = [f"define void @{name}(i64 %n, ptr noalias %out, ptr noalias %x, ptr noalias %y) {{"]
    lines += ["entry:\n  br label %loop\nloop:"]
    lines += ["  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    for j in range(unroll):
        lines.append(f"  %k{j} = add i64 %i, {j * lanes}")
        for array in "xy" if triad else "x":
            lines.append(f"  %p{array}{j} = getelementptr float, ptr %{array}, i64 %k{j}")
            lines.append(f"  %{array}{j} = load {vector}, ptr %p{array}{j}, align 4")
        if triad:
            three = f"splat (float 3.0), {vector} %x{j})"
            fma = f"call {vector} @llvm.fma.v{lanes}f32({vector} %y{j}, {vector} {three}"
            lines.append(f"  %r{j} = {fma}")
        lines.append(f"  %q{j} = getelementptr float, ptr %out, i64 %k{j}")
        lines.append(f"  store {vector} %{'r' if triad else 'x'}{j}, ptr %q{j}, align 4")
    lines += [f"  %next = add i64 %i, {unroll * lanes}\n  %more = icmp ult i64 %next, %n"]
    lines += ["  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}"]
    return "\n".join(lines)


def read_kernel(lanes: int) -> str:
    """LLVM text of `read(n, times, x, out)`: the sum of `n` floats, gone over `times` times."""
    vector, ids = f"<{lanes} x float>", range(READ_UNROLL)
    lines = ["define void @read(i64 %n, i64 %times, ptr %x, ptr %out) {\nentry:\n  br label %loop"]
    lines += ["loop:\n  %i = phi i64 [ 0, %entry ], [ %j, %loop ]"]
    lines += ["  %t = phi i64 [ 0, %entry ], [ %u, %loop ]"]
    lines += [f"  %a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in ids]
    for k in ids:
        lines.append(f"  %k{k} = add i64 %i, {k * lanes}")
        lines.append(f"  %p{k} = getelementptr float, ptr %x, i64 %k{k}")
        lines.append(f"  %v{k} = load {vector}, ptr %p{k}, align 4")
        lines.append(f"  %b{k} = fadd {vector} %a{k}, %v{k}")
    lines += [f"  %next = add i64 %i, {READ_UNROLL * lanes}\n  %over = icmp uge i64 %next, %n"]
    lines += ["  %j = select i1 %over, i64 0, i64 %next"]
    lines += ["  %more = zext i1 %over to i64\n  %u = add i64 %t, %more"]
    lines += ["  %go = icmp ult i64 %u, %times\n  br i1 %go, label %loop, label %done\ndone:"]
    for k in ids:
        lines.append(f"  %q{k} = getelementptr {vector}, ptr %out, i64 {k}")
        lines.append(f"  store {vector} %b{k}, ptr %q{k}, align 4")
    return "\n".join([*lines, "  ret void\n}"])


def compile_kernels(lanes: int) -> tuple[dict[str, Kernel], llvm.ExecutionEngine]:
    """Compile the kernels for this host; the engine must live as long as they do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    streams = [stream_kernel("copy", lanes, False), stream_kernel("triad", lanes, True)]
    module = llvm.parse_assembly("\n".join([fma_kernel(lanes), read_kernel(lanes), *streams]))
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    signatures = {name: (long, pointer, pointer, pointer) for name in ("copy", "triad")}
    signatures |= {"fma": (long, pointer), "read": (long, long, pointer, pointer)}
    kernels = {
        name: ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))
        for name, arguments in signatures.items()
    }
    return kernels, engine


def seconds_at_once(kernel: Kernel, calls: Sequence[tuple[int, ...]]) -> float:
    """Run one thread a call, all starting together; seconds until the last is done."""
    gate = threading.Barrier(len(calls) + 1)

    def body(arguments: tuple[int, ...]) -> None:
        gate.wait()
        kernel(*arguments)

    threads = [threading.Thread(target=body, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    gate.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def roof(
    what: str, unit: str, amount: float, kernel: Kernel, calls: Sequence[tuple[int, ...]]
) -> Roof:
    """Measure how fast `calls` together do `amount` (in 1e9): best and median of the repeats."""
    seconds = sorted(seconds_at_once(kernel, calls) for _ in range(REPEATS))
    return Roof(what, len(calls), amount / seconds[0], amount / seconds[REPEATS // 2], unit)


def arithmetic_roof(threads: int, kernels: dict[str, Kernel], lanes: int) -> Roof:
    """Multiply-adds in registers."""
    sums = [np.full(CHAINS * lanes, 0.5, np.float32) for _ in range(threads)]
    flops = 2 * CHAINS * lanes * FMA_STEPS * threads / 1e9
    calls = [(FMA_STEPS, data.ctypes.data) for data in sums]
    return roof("f32 multiply-add", "GFLOP/s", flops, kernels["fma"], calls)


def read_roofs(threads: int, kernels: dict[str, Kernel], lanes: int) -> Iterable[Roof]:
    """Reads from each level; every thread has an array of its own, the last cache is shared."""
    machine, step = host(), READ_UNROLL * lanes
    levels = {
        "L1": machine.l1 // 2,
        "L2": machine.l2 // 2,
        "L3": machine.l3 // 2 // threads,
        "memory": ARRAY_MIB * 2**20 // threads,
    }
    sums = np.zeros((threads, step), np.float32)
    for level, size in levels.items():
        count = size // 4 // step * step
        times = max(1, READ_BYTES // size)
        arrays = [np.ones(count, np.float32) for _ in range(threads)]
        calls = [
            (count, times, x.ctypes.data, out.ctypes.data)
            for x, out in zip(arrays, sums, strict=True)
        ]
        moved = count * 4 * times * threads / 1e9
        yield roof(f"{level} read", "GB/s", moved, kernels["read"], calls)


def stream_roofs(threads: int, kernels: dict[str, Kernel], lanes: int) -> Iterable[Roof]:
    """Copy and triad through memory, each thread having its part of the arrays."""
    size = ARRAY_MIB * 2**20 // 4
    arrays = [np.ones(size, np.float32) for _ in range(3)]
    share = size // threads // (4 * lanes) * (4 * lanes)
    parts = [(share, *(array[i * share :].ctypes.data for array in arrays)) for i in range(threads)]
    moved = share * threads * 4 / 1e9
    yield roof("copy", "GB/s", 2 * moved, kernels["copy"], parts)
    yield roof("triad", "GB/s", 3 * moved, kernels["triad"], parts)


def measure(counts: Iterable[int]) -> Iterable[Roof]:
    """All roofs at each thread count."""
    lanes = host().lanes(32)
    kernels, engine = compile_kernels(lanes)
    for threads in counts:
        yield arithmetic_roof(threads, kernels, lanes)
        yield from read_roofs(threads, kernels, lanes)
        yield from stream_roofs(threads, kernels, lanes)
    engine.close()


def describe_machine(counts: Iterable[int]) -> dict[str, Any]:
    """What a figure needs beside it: processor, caches in bytes, cores, measured roofs."""
    machine = host()
    return {
        "cpu": machine.cpu,
        "architecture": machine.architecture,
        "description": machine.describe(),
        "cores": machine.cores,
        "caches": {"l1": machine.l1, "l2": machine.l2, "l3": machine.l3},
        "roofs": [asdict(one) for one in measure(counts)],
    }


def main() -> None:
    """Print the roofs at each thread count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2", help="comma separated thread counts")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    arguments = parser.parse_args()
    print(host().describe())
    machine = describe_machine(map(int, arguments.threads.split(",")))
    for one in machine["roofs"]:
        print(
            f"{one['what']:<18} {one['threads']} threads {one['best']:8.1f} {one['unit']:<8}"
            f" (median {one['median']:.1f})"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(machine, indent=1) + "\n")


if __name__ == "__main__":
    main()
