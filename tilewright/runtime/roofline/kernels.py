"""Small kernels that do one thing as fast as the machine can: LLVM text, compiled for the host.

multiply_add   independent accumulators in registers: the arithmetic roof, one kernel a type
fma_chain      one sum that stays in a register: the latency of an FMA
cycles         dependent integer operations of one cycle each: the core's clock
read           sums an array over and over: the roof of whatever cache the array fits into
clock          reads the clock: what timing itself costs
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tilewright.runtime.cpu.host_features import host_features

CHAINS = 12
"""Independent accumulators: more than latency times units, fewer than any target's registers."""

CYCLES = 32
"""Operations that one step of `cycles` takes, one after another."""

READ_UNROLL = 8
"""Vectors that one step of `read` takes."""

FMA_CHAIN = "fma_chain"
Kernel = Callable[..., None]

# Lanes of f32 in a register, by the widest extension present; first match wins.
_VECTORS = (("avx512f", 16), ("avx", 8), ("", 4))
_WANTED = ("avx512f", "avx", "fma")


class Instruction(NamedTuple):
    """A vector instruction that adds products to sums: `sum = name(sum, factor, factor)`.

    `element` is the type of the factors; `operations` are those of one instruction.
    """

    element: str
    feature: str
    name: str
    sum: str
    factor: str
    operations: int


# The widest instruction of each element type comes first.
INSTRUCTIONS = (
    Instruction(
        "bf16",
        "avx512bf16",
        "llvm.x86.avx512bf16.dpbf16ps.512",
        "<16 x float>",
        "<32 x bfloat>",
        64,
    ),
    Instruction("bf16", "bf16", "llvm.aarch64.neon.bfmmla", "<4 x float>", "<8 x bfloat>", 32),
    Instruction("f16", "avx512fp16", "llvm.fma.v32f16", "<32 x half>", "<32 x half>", 64),
    Instruction("f16", "fullfp16", "llvm.fma.v8f16", "<8 x half>", "<8 x half>", 16),
    Instruction("i8", "avx512vnni", "llvm.x86.avx512.vpdpbusd.512", "<16 x i32>", "<64 x i8>", 128),
    Instruction("i8", "i8mm", "llvm.aarch64.neon.smmla.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 64),
    Instruction(
        "i8", "dotprod", "llvm.aarch64.neon.sdot.v4i32.v16i8", "<4 x i32>", "<16 x i8>", 32
    ),
)


def lanes() -> int:
    """Elements of f32 in a vector register of this machine."""
    return next(count for name, count in _VECTORS if not name or name in host_features())


def host_instructions() -> dict[str, Instruction]:
    """The instruction for each element type that this machine has one for."""
    vector = f"<{lanes()} x float>"
    found = {"f32": Instruction("f32", "", f"llvm.fma.v{lanes()}f32", vector, vector, 2 * lanes())}
    for one in INSTRUCTIONS:
        if one.feature in host_features():
            found.setdefault(one.element, one)
    return found


def multiply_add(one: Instruction, name: str = "", chains: int = CHAINS) -> str:
    """LLVM text of `multiply_add_<element>(steps, data)`: accumulators in registers.

    Each accumulator is loaded from and stored to memory, so that LLVM merges or drops none.
    """
    ids = range(chains)
    name = name or f"multiply_add_{one.element}"
    lines = [f"define void @{name}(i64 %steps, ptr %data) {{\nentry:"]
    for i in range(max(chains, 2)):
        lines.append(f"  %p{i} = getelementptr {one.sum}, ptr %data, i64 {i}")
    for i in ids:
        lines.append(f"  %start{i} = load {one.sum}, ptr %p{i}, align 4")
    lines += [f"  %factor{i} = load {one.factor}, ptr %p{i}, align 1" for i in (0, 1)]
    lines += ["  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    lines += [f"  %a{i} = phi {one.sum} [ %start{i}, %entry ], [ %b{i}, %loop ]" for i in ids]
    factors = f"{one.factor} %factor0, {one.factor} %factor1"
    for i in ids:
        # llvm.fma has the addend last, the others have it first.
        value = f"{one.sum} %a{i}"
        given = f"{factors}, {value}" if one.name.startswith("llvm.fma") else f"{value}, {factors}"
        lines.append(f"  %b{i} = call {one.sum} @{one.name}({given})")
    lines += ["  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %steps"]
    lines += ["  br i1 %more, label %loop, label %done\ndone:"]
    lines += [f"  store {one.sum} %b{i}, ptr %p{i}, align 4" for i in ids]
    return "\n".join([*lines, "  ret void\n}"])


def declaration(one: Instruction) -> str:
    """LLVM text that declares an instruction."""
    return f"declare {one.sum} @{one.name}({one.sum}, {one.factor}, {one.factor})"


def cycles() -> str:
    """LLVM text of `cycles(steps, data)`: each step is CYCLES dependent additions and xors."""
    lines = ["define void @cycles(i64 %steps, ptr %data) {\nentry:"]
    lines += ["  %p1 = getelementptr i64, ptr %data, i64 1\n  %start = load i64, ptr %data"]
    lines += ["  %y = load i64, ptr %p1\n  br label %loop\nloop:"]
    lines += ["  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    lines += [f"  %x0 = phi i64 [ %start, %entry ], [ %x{CYCLES}, %loop ]"]
    for k in range(CYCLES):
        lines.append(f"  %x{k + 1} = {'xor' if k % 2 else 'add'} i64 %x{k}, %y")
    lines += ["  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %steps"]
    lines += ["  br i1 %more, label %loop, label %done\ndone:"]
    return "\n".join([*lines, f"  store i64 %x{CYCLES}, ptr %data\n  ret void\n}}"])


def read(count: int) -> str:
    """LLVM text of `read(n, times, x, out)`: the sum of `n` floats, gone over `times` times."""
    vector, ids = f"<{count} x float>", range(READ_UNROLL)
    lines = ["define void @read(i64 %n, i64 %times, ptr %x, ptr %out) {\nentry:\n  br label %loop"]
    lines += ["loop:\n  %i = phi i64 [ 0, %entry ], [ %j, %loop ]"]
    lines += ["  %t = phi i64 [ 0, %entry ], [ %u, %loop ]"]
    lines += [f"  %a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in ids]
    for k in ids:
        lines.append(f"  %k{k} = add i64 %i, {k * count}")
        lines.append(f"  %p{k} = getelementptr float, ptr %x, i64 %k{k}")
        lines.append(f"  %v{k} = load {vector}, ptr %p{k}, align 4")
        lines.append(f"  %b{k} = fadd {vector} %a{k}, %v{k}")
    lines += [f"  %next = add i64 %i, {READ_UNROLL * count}\n  %over = icmp uge i64 %next, %n"]
    lines += ["  %j = select i1 %over, i64 0, i64 %next"]
    lines += ["  %more = zext i1 %over to i64\n  %u = add i64 %t, %more"]
    lines += ["  %go = icmp ult i64 %u, %times\n  br i1 %go, label %loop, label %done\ndone:"]
    for k in ids:
        lines.append(f"  %q{k} = getelementptr {vector}, ptr %out, i64 {k}")
        lines.append(f"  store {vector} %b{k}, ptr %q{k}, align 4")
    return "\n".join([*lines, "  ret void\n}"])


CLOCK = """
declare i32 @clock_gettime(i32, ptr)
define void @clock(i64 %steps) {
entry:
  %time = alloca [2 x i64], align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %steps
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def compile_roof_kernels(instructions: Iterable[Instruction]) -> tuple[dict[str, Kernel], Any]:
    """The kernels by name, and the engine that must live as long as they do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    chosen = tuple(instructions)
    # Not all of the host's: LLVM complains of those that only Linux knows.
    wanted = {*_WANTED, *(one.feature for one in chosen)} & host_features()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=",".join(f"+{f}" for f in sorted(wanted)), opt=3
    )
    sums = {f"multiply_add_{one.element}": multiply_add(one) for one in chosen}
    fma = host_instructions()["f32"]
    declared = dict.fromkeys(map(declaration, (*chosen, fma)))
    chain = multiply_add(fma, FMA_CHAIN, 1)
    texts = [*declared, *sums.values(), chain, cycles(), read(lanes()), CLOCK]
    module = llvm.parse_assembly("\n".join(texts))
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    looping = (*sums, FMA_CHAIN, "cycles")
    signatures: dict[str, tuple[Any, ...]] = {name: (long, pointer) for name in looping}
    signatures |= {"read": (long, long, pointer, pointer), "clock": (long,)}
    kernels: dict[str, Kernel] = {
        name: ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))
        for name, arguments in signatures.items()
    }
    return kernels, engine
