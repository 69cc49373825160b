"""`wgmma`: the matrix instruction of a warpgroup, with operands in shared memory.

    wgmma.m64n256k16  c[m, n] += a[m, k] * b[k, n]      64 x N x 16 of f16 or bf16, c in f32

Operands of f32, rounded to TF32 before they are stored: 64 x N x 8, both K-major. So are 8-bit
integers, accumulated in i32: 64 x N x 32.

Each of the four warps has 16 of the 64 rows of accumulators, distributed over its lanes as by
`mma.sync` (see `mma.py`). So to a schedule it is an instruction of one warp, for sixteen rows; the
A operands of the four warps must follow each other in memory, unless they are fragments. A row of
an operand in shared memory has 64 elements, 128 bytes, swizzled as for `mma.sync`; longer rows are
in panels of 64 columns, all rows of one panel and then those of the next. Operands are aligned to
1024 bytes.

A in registers (CUTLASS: RS) is `rs`. Where a fragment is defined before a loop and read in every
iteration it is `rs_copy`: each iteration copies it to other registers. Where an iteration branches
between two products, ptxas before CUDA 13.4, and the drivers of that time, forget that the next
iteration reads the fragment again, and reuse its registers.

The plain intrinsic waits for its own end. `_async` waits for the end of the one before it and stays
in flight itself: its operands must not change, and nobody may read the accumulators, until the next
one has waited or `wgmma_wait` has. `_async_2` waits for all but itself and the one before it.
`_issue` waits for nothing, and `_issue_zero` also clears the accumulators; `wgmma_wait_128_2` waits
for all but the last two.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable, function_text
from tilewright.schedule.intrin.nvidia.mma import (
    fragment_addresses,
    fragment_lines,
    zero_intrinsic,
)
from tilewright.schedule.intrin.nvidia.mma_types import (
    BYTE_KINDS,
    SIGNS,
    accumulator_type,
    llvm_accumulator,
    operand_bytes,
    operand_types,
    product_text,
    with_accumulator,
)

WARP_M, WGMMA_K = 16, 64
"""The rows of one warp, and the K of one tile statement, in elements of 16 bits."""
WGMMA_N = (256, 192, 128, 64)
"""The widths N."""
K_MAJOR_ONLY_N = (160, 96, 32)
"""Widths for a K-major B of 16 bits only: an N-major B is in panels of 64 columns."""
MAX_IN_FLIGHT = 2
"""How many may stay in flight behind a wait."""
UNLIMITED = 1 << 16
"""In flight behind an instruction that waits for nothing."""
WARPGROUP_WARPS = 4
"""The warps of a warpgroup."""
A_IN_REGISTERS = ("rs", "rs_copy")
"""The layouts of an A in registers: as it is, or copied in every iteration of a loop."""
# The instruction for each kind of operands.
_TYPES = {
    "bf16": "k16.f32.bf16.bf16",
    "f16": "k16.f32.f16.f16",
    "f32": "k8.f32.tf32.tf32",
    **{kind: f"k32.s32.{SIGNS[a]}.{SIGNS[b]}" for kind, (a, b) in BYTE_KINDS.items()},
}
# The PTX version that has operands of mixed signedness.
_MIXED = ("ptx84",)
# The constraint letter of an accumulator register.
_REGISTERS = {"f32": "f", "i32": "r"}
# Bytes of K that one instruction takes, and the instructions of a tile statement.
_STEP_BYTES = 32
_STEPS = WGMMA_K * 2 // _STEP_BYTES
# Bits of a descriptor: 128-byte swizzle, and 1024 bytes between groups of eight rows.
_SWIZZLE_BITS = (1 << 62) | (64 << 32)
# From one panel of columns to the next, in units of 16 bytes.
_PANEL_STRIDE = WGMMA_K * 128 // 16


def wgmma_names(kind: str, n: int, right: str, left: str = "n") -> tuple[str, str]:
    """The intrinsics that clear and accumulate sixteen rows; layouts as in `mma.py`."""
    order = f"{left}_{right}" if left in A_IN_REGISTERS else f"{left}{right}"
    return _zero_name(accumulator_type(kind), n), f"wgmma_{kind}_{n}_{order}"


def _zero_name(acc: str, n: int) -> str:
    return f"{with_accumulator('wgmma_zero', acc)}_{n}"


def wgmma_k(bytes: int) -> int:
    """The K of one tile statement, of elements of so many bytes."""
    return WGMMA_K * 2 // bytes


def wgmma_layouts(kind: str) -> Iterator[tuple[str, str]]:
    """The layouts of A and B: only 16-bit operands may be N-major, or in registers."""
    if operand_bytes(kind) != 2:
        yield "n", "t"
        return
    for left in ("n", *A_IN_REGISTERS):
        for right in "nt":
            yield left, right


def wait_name(n: int, pending: int = 0, acc: str = "f32") -> str:
    """The intrinsic that waits for all instructions in flight but the last `pending`."""
    return f"{with_accumulator('wgmma_wait', acc)}_{n}" + (f"_{pending}" if pending else "")


def issue_name(name: str, zero: bool) -> str:
    """The variant that waits for nothing; with `zero` it clears the accumulators first."""
    return f"{name}_{'issue_zero' if zero else 'issue'}"


def async_name(name: str, pending: int = 1) -> str:
    """The variant that leaves `pending` in flight, itself among them."""
    return f"{name}_async" + (f"_{pending}" if pending > 1 else "")


def _descriptor(word: str, leading: int) -> Iterator[str]:
    """The matrix descriptor of an operand: its address and layout."""
    w = word
    yield f"%{w}.bits = and i32 %{w}.start, 262143"
    yield f"%{w}.units = lshr i32 %{w}.bits, 4"
    yield f"%{w}.wide = zext i32 %{w}.units to i64"
    yield f"%{w}.d0 = or i64 %{w}.wide, {_SWIZZLE_BITS | leading << 16}"


def _a_descriptors() -> Iterator[str]:
    """A in shared memory: each warp gives the address of the rows of the whole warpgroup."""
    yield "%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
    yield "%number = lshr i32 %thread, 5"
    yield f"%member = and i32 %number, {WARPGROUP_WARPS - 1}"
    yield "%rows.before = shl i32 %member, 11"
    yield "%a.near = addrspacecast ptr %a to ptr addrspace(3)"
    yield "%a.n = ptrtoint ptr addrspace(3) %a.near to i32"
    yield "%a.start = sub i32 %a.n, %rows.before"
    yield from _descriptor("a", 1)
    yield from _steps("a", _STEP_BYTES // 16)


def b_descriptors(right: str) -> Iterator[str]:
    """B in shared memory: a descriptor for each step."""
    yield "%b.near = addrspacecast ptr %b to ptr addrspace(3)"
    yield "%b.start = ptrtoint ptr addrspace(3) %b.near to i32"
    yield from _descriptor("b", 1 if right == "t" else _PANEL_STRIDE)
    yield from _steps("b", _STEP_BYTES // 16 if right == "t" else _STEP_BYTES // 2 * 128 // 16)


def _steps(word: str, units: int) -> Iterator[str]:
    """The descriptors of the other steps, so many units of 16 bytes apart."""
    for n in range(1, _STEPS):
        yield f"%{word}.d{n} = add i64 %{word}.d0, {n * units}"


def _wgmma(
    name: str, kind: str, n: int, layout: tuple[str, str], pending: int, zero: bool = False
) -> Intrinsic:
    """A tile statement; `pending` is how many stay in flight behind it, all if negative."""
    left, right = layout
    in_registers = left in A_IN_REGISTERS
    own = fragment_lines("a", _STEPS, "i32") if in_registers else _a_descriptors()
    lines = [*own, *b_descriptors(right), *_instructions(kind, n, layout, pending, zero)]
    k, acc = wgmma_k(operand_bytes(kind)), accumulator_type(kind)
    b = f"[{n}, {k}]" if right == "t" else f"[{k}, {n}]"
    product = product_text(kind, "a[i, k]", "b[j, k]" if right == "t" else "b[k, j]")
    one, other = operand_types(kind)
    return Intrinsic(
        f"func @{name}(a: {one}[{WARP_M}, {k}], b: {other}{b}, out c: {acc}[{WARP_M}, {n}])"
        f" {{ for i, j, k in serial({WARP_M}, {n}, {k}) {{ c[i, j] += {product} }} }}",
        tile=f"mma.n{right}",
        arch="nvptx64",
        features=() if one == other else _MIXED,
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
        swizzle_panels=("a", "b"),
        async_proxy=True,
        async_variant="" if pending or in_registers else async_name(name),
        wait=wait_name(n, acc=acc),
        in_flight=pending if pending >= 0 else UNLIMITED,
    )


def _instructions(
    kind: str, n: int, layout: tuple[str, str], pending: int, zero: bool = False
) -> Iterator[str]:
    """Four steps, and the wait for them, or for those before them."""
    count = n // 2
    before = 0 if zero else count
    left, _ = layout
    in_registers, copied = left in A_IN_REGISTERS, left == "rs_copy"
    accumulators = ", ".join(f"${i}" for i in range(count))
    given: list[str] = []
    name = f"wgmma.mma_async.sync.aligned.m64n{n}{_TYPES[kind]}"
    copies, steps = [f".reg .b32 kept<{4 * _STEPS}>;"] if copied else [], []
    for step in range(_STEPS):
        own = [f"i32 %a{step}.{part}" for part in range(4)] if in_registers else [f"i64 %a.d{step}"]
        start = count + before + len(given)
        words = [f"${start + part}" for part in range(len(own))]
        if copied:
            fresh = [f"kept{4 * step + part}" for part in range(4)]
            # The bits that a word has in common with itself: ptxas does not see a copy in this.
            copies += [
                f"lop3.b32 {copy}, {word}, {word}, {word}, 0x80;"
                for copy, word in zip(fresh, words, strict=True)
            ]
            words = fresh
        rows = f"{{{', '.join(words)}}}" if in_registers else words[0]
        scale_d = "q" if zero and not step else "p"
        operands = f"{{{accumulators}}}, {rows}, ${start + len(own)}, {scale_d}"
        steps.append(f"{name} {operands}{_modifiers(kind, layout)};")
        given += [*own, f"i64 %b.d{step}"]
    text = ["{", ".reg .pred p;", "setp.eq.b32 p, 0, 0;", *copies]
    text += [".reg .pred q;", "setp.ne.b32 q, 0, 0;"] if zero else []
    text += ["wgmma.fence.sync.aligned;", *steps, "wgmma.commit_group.sync.aligned;"]
    text += [f"wgmma.wait_group.sync.aligned {pending};"] if pending >= 0 else []
    yield from on_accumulators(n, [*text, "}"], given, zero, accumulator_type(kind))


def _modifiers(kind: str, layout: tuple[str, str]) -> str:
    """The immediates of an instruction: factors of floats, and which operands are transposed."""
    if kind in BYTE_KINDS:
        return ""
    if kind == "f32":
        return ", 1, 1"
    left, right = layout
    transposed = "0" if right == "t" else "1"
    return f", 1, 1, {transposed}" if left in A_IN_REGISTERS else f", 1, 1, 0, {transposed}"


def on_accumulators(
    n: int, text: list[str], more: list[str], zero: bool = False, acc: str = "f32"
) -> Iterator[str]:
    """Inline assembly that updates, or clears, a lane's accumulators, `$0` and so on in it."""
    count, kind = n // 2, llvm_accumulator(acc)
    addresses = []
    for number, _, _, lines in fragment_addresses(WARP_M, n):
        yield from lines
        addresses += [f"%p{number}.{i}" for i in range(4)]
    old = [] if zero else [f"%old{i}" for i in range(count)]
    for register, address in zip(old, addresses, strict=False):
        yield f"{register} = load {kind}, ptr {address}, align 4"
    body = "\\0A".join(text)
    # Written before all operands are read: no operand may share a register with them.
    operands = [f"=&{_REGISTERS[acc]}"] * count + [str(i) for i in range(len(old))]
    operands += ["r" if what.startswith("i32") else "l" for what in more]
    given = [*(f"{kind} {register}" for register in old), *more]
    results = f"{{ {', '.join([kind] * count)} }}"
    constraints = ",".join([*operands, "~{memory}"])
    yield f'%new = call {results} asm sideeffect "{body}", "{constraints}"({", ".join(given)})'
    for i, address in enumerate(addresses):
        yield f"%new{i} = extractvalue {results} %new, {i}"
        yield f"store {kind} %new{i}, ptr {address}, align 4"


def _wait(n: int, pending: int, acc: str) -> Intrinsic:
    """The wait for all in flight but the last `pending`."""
    name = wait_name(n, pending, acc)
    wait = [f"wgmma.wait_group.sync.aligned {pending};"]
    return Intrinsic(
        f"func @{name}(a: {acc}[{WARP_M}, {n}], out c: {acc}[{WARP_M}, {n}])"
        f" {{ for i, j in serial({WARP_M}, {n}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(
            name,
            "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c",
            on_accumulators(n, wait, [], acc=acc),
        ),
        strided=True,
        in_flight=pending,
    )


def _widths(acc: str) -> tuple[int, ...]:
    """The widths of accumulators of a type."""
    return (*WGMMA_N, *(K_MAJOR_ONLY_N if acc == "f32" else ()))


WGMMA = IntrinsicTable(
    {
        **{
            name: partial(zero_intrinsic, name, WARP_M, n, acc)
            for acc in _REGISTERS
            for n in _widths(acc)
            for name in (_zero_name(acc, n),)
        },
        **{
            made: partial(_wgmma, made, kind, n, (left, right), pending)
            for kind in _TYPES
            for n in WGMMA_N
            for left, right in wgmma_layouts(kind)
            for name in (wgmma_names(kind, n, right, left)[1],)
            for pending, made in enumerate((name, async_name(name)) if left == "n" else (name,))
        },
        **{
            made: partial(_wgmma, made, dtype, n, ("n", "t"), pending)
            for dtype in ("bf16", "f16")
            for n in K_MAJOR_ONLY_N
            for name in (wgmma_names(dtype, n, "t")[1],)
            for pending, made in (
                (0, name),
                (1, async_name(name)),
                (-1, issue_name(name, zero=False)),
            )
        },
        **{
            made: partial(_wgmma, made, dtype, n, ("n", right), MAX_IN_FLIGHT)
            for dtype in ("bf16", "f16")
            for n in WGMMA_N
            for right in "nt"
            for made in (async_name(wgmma_names(dtype, n, right)[1], MAX_IN_FLIGHT),)
        },
        **{
            issue_name(name, zero): partial(
                _wgmma, issue_name(name, zero), kind, n, (left, right), -1, zero
            )
            for kind in ("bf16", "f16", *BYTE_KINDS)
            for n in WGMMA_N
            for left, right in wgmma_layouts(kind)
            for name in (wgmma_names(kind, n, right, left)[1],)
            for zero in (False, True)
        },
        **{
            wait_name(n, pending, acc): partial(_wait, n, pending, acc)
            for acc, most in (("f32", MAX_IN_FLIGHT), ("i32", 1))
            for n in _widths(acc)
            for pending in range(most + 1)
        },
    }
)
"""The entries of the table."""
