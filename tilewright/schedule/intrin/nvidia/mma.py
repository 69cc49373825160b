"""`mma.sync`: products of f16 and bf16 by the tensor cores of NVIDIA GPUs, a warp at a time.

    mma.m16n8k16  c[m, n] += a[m, k] * b[k, n]      16 x 8 x 16, c in f32

Operands of f32 are rounded to tf32, of 11 bits, where the user allows that: 16 x 8 x 8 at once.
Those of 8-bit integers, each of them signed or not, are summed in i32: 16 x 8 x 32.

A warp has a block of sums, `mma_zero` starts it, `mma_bf16` adds a step of 16 to all of it. They
are a fragment: thread `t` has the elements `[t // 4 + 8 i, t % 4 * 2 + 8 j + (0 or 1)]`. Operands
are in shared memory, either way round, and reach registers by `ldmatrix`: eight rows of 16 bytes at
once. Rows lie at least 128 bytes apart, and piece `p` of row `r` at the place of piece `p ^ r % 8`,
so that the eight are in different banks (`finalize/gpu/swizzle.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.nvidia.mma_types import (
    BYTE_KINDS,
    SIGNS,
    SUMS,
    llvm_sum,
    of_sums,
    operand_bytes,
    operand_types,
    product_text,
    sum_type,
)

ROWS, COLUMNS, DEPTH = 16, 8, 16
"""What one instruction computes."""
PIECE = 8
"""Elements of 16 bytes, the row of a matrix that `ldmatrix` reads."""
BLOCKS = ((64, 64), (32, 64), (64, 32), (32, 32), (16, 32), (16, 16), (16, 64), (16, 128))
"""How many rows and columns of sums a warp may have."""
ORDERS = ("nn", "nt", "tn", "tt", "rn", "rt")
"""How both operands lie: `n` as they are multiplied, row by row; `t` column by column; `r`, for 16
rows, as a fragment, that is as sums lie, in the registers that the instruction reads."""
# The instruction for each kind of operands, and what it takes.
_TYPES = {
    "bf16": ("m16n8k16.row.col.bf16", "i32"),
    "f16": ("m16n8k16.row.col.f32.f32", "<2 x half>"),
    "f32": ("m16n8k8.row.col.tf32", "i32"),
    **{
        kind: (f"m16n8k32.row.col.{'.'.join(dict.fromkeys(SIGNS[t] for t in types))}", "i32")
        for kind, types in BYTE_KINDS.items()
    },
}
_ROUND = "llvm.nvvm.f2tf32.rna"
_ARCH = "nvptx64"
_FOUR = "{ i32, i32, i32, i32 }"


def mma_names(kind: str, rows: int, columns: int, order: str) -> tuple[str, str]:
    """The intrinsics that start and add to a warp's block of sums."""
    return zero_name(sum_type(kind), rows, columns), f"mma_{kind}_{rows}x{columns}_{order}"


def zero_name(total: str, rows: int, columns: int) -> str:
    """The intrinsic that starts a block of sums of a type."""
    return f"{of_sums('mma_zero', total)}_{rows}x{columns}"


def mma_depth(kind: str) -> int:
    """How much of the sum one instruction adds: 32 bytes of each operand."""
    return DEPTH * 2 // operand_bytes(kind)


def mma_orders(kind: str, rows: int) -> tuple[str, ...]:
    """How operands may lie: only elements of 16 bits are turned on their way."""
    halves = tuple(order for order in ORDERS if order[0] != "r" or rows == ROWS)
    return halves if operand_bytes(kind) == 2 else ("nt",)


def function_text(name: str, params: str, lines: list[str]) -> str:
    """The definition of an intrinsic."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"define internal void @tw.{name}({params}) alwaysinline {{\n{body}\n  ret void\n}}"


def fragment_places(rows: int, columns: int) -> Iterator[tuple[int, int, int, list[str]]]:
    """Each instruction's number, row and column, and the addresses of its four sums."""
    for number in range(rows // ROWS * (columns // COLUMNS)):
        i, j = divmod(number, columns // COLUMNS)
        lines = []
        for half in range(2):
            for pair in range(2):
                to = f"%p{number}.{half * 2 + pair}"
                row = f"%r{number}.{half}"
                if not pair:
                    distance = f"%d{number}.{half}"
                    lines.append(f"{distance} = mul i64 %rows.c, {i * ROWS + half * 8}")
                    lines.append(f"{row} = getelementptr i8, ptr %c, i64 {distance}")
                lines.append(f"{to} = getelementptr float, ptr {row}, i64 {j * COLUMNS + pair}")
        yield number, i, j, lines


def zero_row(name: str, rows: int, columns: int, total: str = "f32") -> Intrinsic:
    """What starts a block of sums."""
    lines = []
    word, zero, value = SUMS[total]
    for number, _, _, places in fragment_places(rows, columns):
        lines += places
        lines += [f"store {word} {zero}, ptr %p{number}.{n}, align 4" for n in range(4)]
    return Intrinsic(
        f"func @{name}(out c: {total}[{rows}, {columns}]) {{"
        f" for i, j in serial({rows}, {columns}) {{ c[i, j] = {value} }} }}",
        tile="fill",
        arch=_ARCH,
        llvm=function_text(name, "ptr %c, i64 %rows.c", lines),
        strided=True,
    )


class _Operand:
    """How fragments of an operand are read: by address of each thread, turned or as they are.

    `side` is how many rows of the left, columns of the right operand there are. Where elements of
    the depth are neighbours (`deep`), a row of memory is one of those.
    """

    def __init__(self, word: str, side: int, deep: bool) -> None:
        self.word = word
        self.side = side
        self.deep = deep
        self.turned = deep == (word == "b")

    @property
    def trans(self) -> str:
        """The word for matrices that are turned on their way."""
        return "" if self.deep else ".trans"

    def lines(self, kind: str) -> Iterator[str]:
        """All of the operand in registers."""
        yield from self.start()
        for number in range(self.side // 16):
            yield from self.read(number)
        yield from self.parts(kind)

    def start(self) -> Iterator[str]:
        """Where a thread's row begins, as a number."""
        w = self.word
        yield f"%{w}.near = addrspacecast ptr %{w} to ptr addrspace(3)"
        yield f"%{w}.n = ptrtoint ptr addrspace(3) %{w}.near to i32"
        yield f"%{w}.rows = trunc i64 %rows.{w} to i32"
        row, piece = ("%high", "%middle") if self.turned else ("%low", "%upper")
        yield f"%{w}.row = mul i32 {row}, %{w}.rows"
        yield f"%{w}.piece = shl i32 {piece}, 4"
        yield f"%{w}.place = add i32 %{w}.row, %{w}.piece"
        yield f"%{w}.first = add i32 %{w}.n, %{w}.place"

    def read(self, number: int) -> Iterator[str]:
        """Sixteen rows or columns: four matrices of 8 x 8."""
        w, n = self.word, f"{self.word}{number}"
        if self.deep:
            yield f"%{n}.skip = mul i32 %{w}.rows, {number * 16}"
        else:
            yield f"%{n}.skip = add i32 0, {number * 32}"
        yield f"%{n}.plain = add i32 %{w}.first, %{n}.skip"
        yield f"%{n}.at = xor i32 %{n}.plain, %swizzle"
        yield f"%{n}.near = inttoptr i32 %{n}.at to ptr addrspace(3)"
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{self.trans}.b16.p3"
        yield f"%{n} = call {_FOUR} @{name}(ptr addrspace(3) %{n}.near)"

    def parts(self, kind: str) -> Iterator[str]:
        """The registers of all that was read."""
        for number in range(self.side // 16):
            n = f"{self.word}{number}"
            for part in range(4):
                yield f"%{n}.{part}.raw = extractvalue {_FOUR} %{n}, {part}"
                if kind == "f32":
                    yield f"%{n}.{part}.f = bitcast i32 %{n}.{part}.raw to float"
                    yield f"%{n}.{part} = call i32 @{_ROUND}(float %{n}.{part}.f)"
                    continue
                yield f"%{n}.{part} = bitcast i32 %{n}.{part}.raw to {_TYPES[kind][1]}"


def fragment_lines(word: str, steps: int, kind: str) -> Iterator[str]:
    """Sixteen rows that are in registers already, as instructions take them.

    For each step of sixteen columns two rows, eight apart, then the same eight columns on.
    """
    for number in range(steps):
        for part in range(4):
            n = f"{word}{number}.{part}"
            yield f"%{n}.row = mul i64 %rows.{word}, {part % 2 * 8}"
            yield f"%{n}.place = add i64 %{n}.row, {number * 32 + part // 2 * 16}"
            yield f"%{n}.at = getelementptr i8, ptr %{word}, i64 %{n}.place"
            yield f"%{n}.raw = load <2 x i16>, ptr %{n}.at, align 2"
            yield f"%{n} = bitcast <2 x i16> %{n}.raw to {kind}"


def _step(name: str, kind: str, rows: int, columns: int, order: str) -> Intrinsic:
    left = _Operand("a", rows, order[0] != "t")
    right = _Operand("b", columns, order[1] == "t")
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
    held = order[0] == "r"
    lines += fragment_lines("a", 1, _TYPES[kind][1]) if held else left.lines(kind)
    lines += right.lines(kind)
    lines += _multiply(kind, rows, columns)
    depth, total = mma_depth(kind), sum_type(kind)
    a = f"[{rows}, {depth}]" if left.deep else f"[{depth}, {rows}]"
    b = f"[{columns}, {depth}]" if right.deep else f"[{depth}, {columns}]"
    x, y = "a[i, k]" if left.deep else "a[k, i]", "b[j, k]" if right.deep else "b[k, j]"
    one, other = operand_types(kind)
    return Intrinsic(
        f"func @{name}(a: {one}{a}, b: {other}{b}, out c: {total}[{rows}, {columns}]) {{"
        f" for i, j, k in serial({rows}, {columns}, {depth})"
        f" {{ c[i, j] += {product_text(kind, x, y)} }} }}",
        tile=f"mma.{order.replace('r', 'n')}",
        arch=_ARCH,
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
    )


def _multiply(kind: str, rows: int, columns: int) -> Iterator[str]:
    instruction, given = _TYPES[kind]
    word = llvm_sum(sum_type(kind))
    sums = f"{{ {', '.join([word] * 4)} }}"
    for number, i, j, places in fragment_places(rows, columns):
        yield from places
        for n in range(4):
            yield f"%old{number}.{n} = load {word}, ptr %p{number}.{n}, align 4"
        a = [f"{given} %a{i}.{n}" for n in range(4)]
        b = [f"{given} %b{j // 2}.{j % 2 * 2 + n}" for n in range(2)]
        c = [f"{word} %old{number}.{n}" for n in range(4)]
        name = f"llvm.nvvm.mma.{instruction}"
        yield f"%new{number} = call {sums} @{name}({', '.join((*a, *b, *c))})"
        for n in range(4):
            yield f"%new{number}.{n} = extractvalue {sums} %new{number}, {n}"
            yield f"store {word} %new{number}.{n}, ptr %p{number}.{n}, align 4"


def _copy(name: str, dtype: str, count: int, way: str) -> Intrinsic:
    """Some bytes on their way to shared memory while the thread goes on."""
    return Intrinsic(
        f"func @{name}(a: {dtype}[{count}], out c: {dtype}[{count}])"
        f" {{ for i in serial({count}) {{ c[i] = a[i] }} }}",
        tile="copy",
        arch=_ARCH,
        llvm=f"""
define internal void @tw.{name}(ptr %a, ptr %c) alwaysinline {{
  %from = addrspacecast ptr %a to ptr addrspace(1)
  %to = addrspacecast ptr %c to ptr addrspace(3)
  call void @llvm.nvvm.cp.async.{way}(ptr addrspace(3) %to, ptr addrspace(1) %from)
  ret void
}}
""",
    )


# Copies by their number of bytes.
COPY_ASYNC = {16: "copy_async", 4: "copy_async_word"}

MMA: dict[str, Intrinsic] = {
    COPY_ASYNC[16]: _copy(COPY_ASYNC[16], "bf16", 8, "cg.shared.global.16"),
    COPY_ASYNC[4]: _copy(COPY_ASYNC[4], "f32", 1, "ca.shared.global.4"),
    **{
        name: zero_row(name, rows, columns, total)
        for total in SUMS
        for rows, columns in BLOCKS
        for name in (zero_name(total, rows, columns),)
    },
    **{
        name: _step(name, kind, rows, columns, order)
        for kind in _TYPES
        for rows, columns in BLOCKS
        for order in mma_orders(kind, rows)
        for name in (mma_names(kind, rows, columns, order)[1],)
    },
}
"""The rows of the table."""
