"""`mma.sync`: the matrix instruction of one warp on the tensor cores of NVIDIA GPUs.

    mma.m16n8k16  c[m, n] += a[m, k] * b[k, n]      16 x 8 x 16 of f16 or bf16, c in f32

Operands of f32 are rounded to TF32 where the user allows that: 16 x 8 x 8. 8-bit integers, each
operand signed or unsigned, are accumulated in i32: 16 x 8 x 32. Turing (sm_75) has shorter
instructions, 16 x 8 x 8 of f16 and 8 x 8 x 16 of bytes. Fragments are the same there, and a step is
several of those: `mma_f16_k8`, `mma_i8_k16`.

A warp has a block of accumulators. `mma_zero` clears it, `mma_bf16` adds one `k16` step to all of
it. The accumulators are a fragment: lane `t` has the elements
`[t // 4 + 8 i, t % 4 * 2 + 8 j + (0 or 1)]`. Operands are in shared memory, K-major or MN-major,
and reach registers by `ldmatrix`, eight rows of 16 bytes at a time. Rows are at least 128 bytes
apart, and vector `p` of row `r` is stored at the position of vector `p ^ r % 8`, so that the eight
rows are in different banks (`finalize/gpu/swizzle.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable, function_text
from tilewright.schedule.intrin.nvidia.mma_types import (
    ACCUMULATORS,
    BYTE_KINDS,
    SIGNS,
    accumulator_type,
    llvm_accumulator,
    operand_bytes,
    operand_types,
    product_text,
    with_accumulator,
)
from tilewright.target.gpu import VECTOR_BYTES

MMA_M, MMA_N, MMA_K = 16, 8, 16
"""The shape of one instruction."""
VECTOR_ELEMENTS = VECTOR_BYTES // 2
"""16-bit elements of a vector, the row of a matrix that `ldmatrix` reads."""
WARP_TILES = (
    *((64, 64), (32, 64), (64, 32), (32, 32)),
    *((16, n) for n in (16, 32, 64, 128, 192, 256)),
)
"""The blocks of accumulators that a warp may have: M and N."""
ORDERS = ("nn", "nt", "tn", "tt", "rn", "rt")
"""The layouts of A and B: `n` not transposed, row by row as in the product; `t` transposed; `r`,
for 16 rows of A, a fragment in registers, laid out as accumulators are."""
# The instruction for each kind of operands, and the type of its operand registers.
_TYPES = {
    "bf16": ("m16n8k16.row.col.bf16", "i32"),
    "f16": ("m16n8k16.row.col.f32.f32", "<2 x half>"),
    "f32": ("m16n8k8.row.col.tf32", "i32"),
    **{
        kind: (f"m16n8k32.row.col.{'.'.join(dict.fromkeys(SIGNS[t] for t in types))}", "i32")
        for kind, types in BYTE_KINDS.items()
    },
}
# The parts of a step of 32 bytes of K that an instruction takes: registers of A, of B, and
# accumulators.
_Parts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
_WHOLE: tuple[_Parts, ...] = (((0, 1, 2, 3), (0, 1), (0, 1, 2, 3)),)
_HALVES: tuple[_Parts, ...] = (((0, 1), (0,), (0, 1, 2, 3)), ((2, 3), (1,), (0, 1, 2, 3)))
_QUARTERS: tuple[_Parts, ...] = (
    *(((0,), (0,), (0, 1)), ((2,), (1,), (0, 1))),
    *(((1,), (0,), (2, 3)), ((3,), (1,), (2, 3))),
)
# Shorter instructions by kind and K, and the parts of a step.
_SHORT = {
    ("f16", 8): ("m16n8k8.row.col.f32.f32", _HALVES),
    **{
        (kind, 16): (_TYPES[kind][0].replace("m16n8k32", "m8n8k16"), _QUARTERS)
        for kind in BYTE_KINDS
    },
}
_ROUND_TO_TF32 = "llvm.nvvm.f2tf32.rna"
_ARCH = "nvptx64"
_FOUR = "{ i32, i32, i32, i32 }"


def mma_names(kind: str, m: int, n: int, order: str, k: int = 0) -> tuple[str, str]:
    """The intrinsics that clear and accumulate a warp's block of accumulators.

    `k` is that of the instruction which the machine has; 0 stands for `mma_k(kind)`.
    """
    word = kind if k in (0, mma_k(kind)) else f"{kind}_k{k}"
    return zero_name(accumulator_type(kind), m, n), f"mma_{word}_{m}x{n}_{order}"


def zero_name(acc: str, m: int, n: int) -> str:
    """The intrinsic that clears a block of accumulators of a type."""
    return f"{with_accumulator('mma_zero', acc)}_{m}x{n}"


def mma_k(kind: str) -> int:
    """The K of one step: 32 bytes of each operand, those of one instruction since sm_80."""
    return MMA_K * 2 // operand_bytes(kind)


def mma_orders(kind: str, m: int) -> tuple[str, ...]:
    """The layouts of operands: `ldmatrix` transposes only elements of 16 bits."""
    halves = tuple(order for order in ORDERS if order[0] != "r" or m == MMA_M)
    return halves if operand_bytes(kind) == 2 else ("nt",)


def fragment_addresses(m: int, n: int) -> Iterator[tuple[int, int, int, list[str]]]:
    """Each instruction's number, row and column, and the addresses of its four accumulators."""
    for number in range(m // MMA_M * (n // MMA_N)):
        i, j = divmod(number, n // MMA_N)
        lines = []
        for half in range(2):
            for pair in range(2):
                to = f"%p{number}.{half * 2 + pair}"
                row = f"%r{number}.{half}"
                if not pair:
                    distance = f"%d{number}.{half}"
                    lines.append(f"{distance} = mul i64 %rows.c, {i * MMA_M + half * 8}")
                    lines.append(f"{row} = getelementptr i8, ptr %c, i64 {distance}")
                lines.append(f"{to} = getelementptr float, ptr {row}, i64 {j * MMA_N + pair}")
        yield number, i, j, lines


def zero_intrinsic(name: str, m: int, n: int, acc: str = "f32") -> Intrinsic:
    """The intrinsic that clears a block of accumulators."""
    lines = []
    kind, zero, value = ACCUMULATORS[acc]
    for number, _, _, addresses in fragment_addresses(m, n):
        lines += addresses
        lines += [f"store {kind} {zero}, ptr %p{number}.{part}, align 4" for part in range(4)]
    return Intrinsic(
        f"func @{name}(out c: {acc}[{m}, {n}]) {{"
        f" for i, j in serial({m}, {n}) {{ c[i, j] = {value} }} }}",
        tile="fill",
        arch=_ARCH,
        llvm=function_text(name, "ptr %c, i64 %rows.c", lines),
        strided=True,
    )


class _Operand:
    """How fragments of an operand are loaded by `ldmatrix`, transposed or not.

    `side` is the M of A, the N of B. Of a `k_major` operand, a row in memory runs along K.
    """

    def __init__(self, word: str, side: int, k_major: bool) -> None:
        self.word = word
        self.side = side
        self.k_major = k_major
        self.transposed = k_major == (word == "b")

    @property
    def trans(self) -> str:
        """The modifier of `ldmatrix` for operands that it transposes."""
        return "" if self.k_major else ".trans"

    def lines(self, kind: str) -> Iterator[str]:
        """All of the operand in registers."""
        yield from self.start()
        for number in range(self.side // 16):
            yield from self.read(number)
        yield from self.parts(kind)

    def start(self) -> Iterator[str]:
        """The address of the row that this lane gives `ldmatrix`, as a number."""
        w = self.word
        yield f"%{w}.near = addrspacecast ptr %{w} to ptr addrspace(3)"
        yield f"%{w}.n = ptrtoint ptr addrspace(3) %{w}.near to i32"
        yield f"%{w}.rows = trunc i64 %rows.{w} to i32"
        row, vector = ("%high", "%middle") if self.transposed else ("%low", "%upper")
        yield f"%{w}.row = mul i32 {row}, %{w}.rows"
        yield f"%{w}.vector = shl i32 {vector}, 4"
        yield f"%{w}.place = add i32 %{w}.row, %{w}.vector"
        yield f"%{w}.first = add i32 %{w}.n, %{w}.place"

    def read(self, number: int) -> Iterator[str]:
        """Sixteen rows or columns: four matrices of 8 x 8."""
        w, n = self.word, f"{self.word}{number}"
        if self.k_major:
            yield f"%{n}.skip = mul i32 %{w}.rows, {number * 16}"
        else:
            yield f"%{n}.skip = add i32 0, {number * 32}"
        yield f"%{n}.plain = add i32 %{w}.first, %{n}.skip"
        yield f"%{n}.at = xor i32 %{n}.plain, %swizzle"
        yield f"%{n}.near = inttoptr i32 %{n}.at to ptr addrspace(3)"
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{self.trans}.b16.p3"
        yield f"%{n} = call {_FOUR} @{name}(ptr addrspace(3) %{n}.near)"

    def parts(self, kind: str) -> Iterator[str]:
        """The registers of all matrices."""
        for number in range(self.side // 16):
            n = f"{self.word}{number}"
            for part in range(4):
                yield f"%{n}.{part}.raw = extractvalue {_FOUR} %{n}, {part}"
                if kind == "f32":
                    yield f"%{n}.{part}.f = bitcast i32 %{n}.{part}.raw to float"
                    yield f"%{n}.{part} = call i32 @{_ROUND_TO_TF32}(float %{n}.{part}.f)"
                    continue
                yield f"%{n}.{part} = bitcast i32 %{n}.{part}.raw to {_TYPES[kind][1]}"


def fragment_lines(word: str, steps: int, kind: str) -> Iterator[str]:
    """Sixteen rows of an operand that are in registers already, as instructions take them.

    For each step of sixteen columns: two rows, eight apart, then the same eight columns on.
    """
    for number in range(steps):
        for part in range(4):
            n = f"{word}{number}.{part}"
            yield f"%{n}.row = mul i64 %rows.{word}, {part % 2 * 8}"
            yield f"%{n}.place = add i64 %{n}.row, {number * 32 + part // 2 * 16}"
            yield f"%{n}.at = getelementptr i8, ptr %{word}, i64 %{n}.place"
            yield f"%{n}.raw = load <2 x i16>, ptr %{n}.at, align 2"
            yield f"%{n} = bitcast <2 x i16> %{n}.raw to {kind}"


def _mma(name: str, kind: str, m: int, n: int, order: str, short: int = 0) -> Intrinsic:
    """One `k` step of a warp's block of accumulators, by instructions of a `short` K if any."""
    left = _Operand("a", m, order[0] != "t")
    right = _Operand("b", n, order[1] == "t")
    lines = [
        "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()",
        "%low = and i32 %lane, 15",
        "%upper = lshr i32 %lane, 4",
        "%in8 = and i32 %lane, 7",
        "%second = shl i32 %upper, 3",
        "%high = or disjoint i32 %in8, %second",
        "%eighth = lshr i32 %lane, 3",
        "%middle = and i32 %eighth, 1",
        "%swizzle = shl i32 %in8, 4",
    ]
    in_registers = order[0] == "r"
    lines += fragment_lines("a", 1, _TYPES[kind][1]) if in_registers else left.lines(kind)
    lines += right.lines(kind)
    lines += _instructions(kind, m, n, short)
    k, acc = mma_k(kind), accumulator_type(kind)
    a = f"[{m}, {k}]" if left.k_major else f"[{k}, {m}]"
    b = f"[{n}, {k}]" if right.k_major else f"[{k}, {n}]"
    x, y = "a[i, k]" if left.k_major else "a[k, i]", "b[j, k]" if right.k_major else "b[k, j]"
    one, other = operand_types(kind)
    return Intrinsic(
        f"func @{name}(a: {one}{a}, b: {other}{b}, out c: {acc}[{m}, {n}]) {{"
        f" for i, j, k in serial({m}, {n}, {k})"
        f" {{ c[i, j] += {product_text(kind, x, y)} }} }}",
        tile=f"mma.{order.replace('r', 'n')}",
        arch=_ARCH,
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
    )


def _instructions(kind: str, m: int, n: int, short: int) -> Iterator[str]:
    whole, given = _TYPES[kind]
    instruction, steps = _SHORT[kind, short] if short else (whole, _WHOLE)
    acc = llvm_accumulator(accumulator_type(kind))
    for number, i, j, addresses in fragment_addresses(m, n):
        yield from addresses
        sums = [f"%old{number}.{part}" for part in range(4)]
        for part, old in enumerate(sums):
            yield f"{old} = load {acc}, ptr %p{number}.{part}, align 4"
        for step, (left, right, out) in enumerate(steps):
            operands = [f"{given} %a{i}.{part}" for part in left]
            operands += [f"{given} %b{j // 2}.{j % 2 * 2 + part}" for part in right]
            operands += [f"{acc} {sums[part]}" for part in out]
            results = f"{{ {', '.join([acc] * len(out))} }}"
            new = f"%new{number}.{step}"
            yield f"{new} = call {results} @llvm.nvvm.mma.{instruction}({', '.join(operands)})"
            last = all(out != later for _, _, later in steps[step + 1 :])
            for place, part in enumerate(out):
                sums[part] = f"{new}.{part}"
                yield f"{sums[part]} = extractvalue {results} {new}, {place}"
                if last:
                    yield f"store {acc} {sums[part]}, ptr %p{number}.{part}, align 4"


MMA = IntrinsicTable(
    {
        **{
            name: partial(zero_intrinsic, name, m, n, acc)
            for acc in ACCUMULATORS
            for m, n in WARP_TILES
            for name in (zero_name(acc, m, n),)
        },
        **{
            name: partial(_mma, name, kind, m, n, order)
            for kind in _TYPES
            for m, n in WARP_TILES
            for order in mma_orders(kind, m)
            for name in (mma_names(kind, m, n, order)[1],)
        },
        **{
            name: partial(_mma, name, kind, m, n, order, k)
            for kind, k in _SHORT
            for m, n in WARP_TILES
            for order in mma_orders(kind, m)
            for name in (mma_names(kind, m, n, order, k)[1],)
        },
    }
)
"""The entries of the table."""
