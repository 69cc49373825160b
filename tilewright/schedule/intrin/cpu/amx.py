"""AMX: matrix products of bf16 on tile registers of 16 rows of 64 bytes.

    tdpbf16ps  c[m, n] += a[m, k] * b[k // 2, n, k % 2]      16 x 16 x 32, c in f32

A block of 32 or 16 rows by 32 columns of accumulators stays in four or two registers during a
reduction; `amx_zero` starts it, `amx_bf16` adds a step of 32, `amx_store` stores it. The registers
have fixed numbers, so one such block can be under way at a time. Subnormal operands and results
count as zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic, MachineState, function_text

ROWS, DEPTH = 16, 32
"""A register's rows, and the bf16 elements in one of them."""
COLUMNS = 32
"""The columns of a block: two registers."""
BLOCKS = (2, 1)
"""How many registers high a block may be."""

_FEATURES = ("amx-tile", "amx-bf16")
# The registers of the operands of a step; accumulators are in those from 0 on, row by row.
_A, _B = 4, 6


def _configuration() -> str:
    """Palette 1; all eight registers with 16 rows of 64 bytes, as the 64 bytes of the format."""
    data = [1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[ROWS] * 8, *[0] * 8]
    return ", ".join(f"i8 {byte}" for byte in data)


AMX_STATE = MachineState(
    "amx",
    f"""
@tw.amx.configuration = private constant [64 x i8] [{_configuration()}], align 64
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tilezero(i8 immarg)
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.tdpbf16ps(i8 immarg, i8 immarg, i8 immarg)
define internal void @tw.amx.begin() alwaysinline {{
  call void @llvm.x86.ldtilecfg(ptr @tw.amx.configuration)
  ret void
}}
define internal void @tw.amx.end() alwaysinline {{
  call void @llvm.x86.tilerelease()
  ret void
}}
""",
)


def amx_names(rows: int) -> tuple[str, str, str]:
    """The intrinsics that zero, update and store a block of `rows` rows of accumulators."""
    size = f"{rows // ROWS}x{COLUMNS // 16}"
    return f"amx_zero_{size}", f"amx_bf16_{size}", f"amx_store_{size}"


def _registers(high: int) -> Iterator[tuple[int, int, int]]:
    """The registers of a block of accumulators: number, row and column of registers."""
    for number in range(2 * high):
        yield number, number // 2, number % 2


def _zero(name: str, high: int) -> Intrinsic:
    calls = [f"call void @llvm.x86.tilezero(i8 {n})" for n, _, _ in _registers(high)]
    return Intrinsic(
        f"func @{name}(out c: f32[{ROWS * high}, {COLUMNS}]) {{"
        f" for i, j in serial({ROWS * high}, {COLUMNS}) {{ c[i, j] = 0.0 }} }}",
        tile="fill",
        arch="x86_64",
        features=_FEATURES,
        llvm=function_text(name, "ptr %c, i64 %rows.c", calls),
        strided=True,
        state=AMX_STATE,
        register_operand="c",
    )


def _step(name: str, high: int) -> Intrinsic:
    """Each operand is loaded once, just before its first use."""
    lines = [
        f"%skip = mul i64 %rows.a, {ROWS}",
        "%a0 = getelementptr i8, ptr %a, i64 0",
        "%a1 = getelementptr i8, ptr %a, i64 %skip",
        "%b0 = getelementptr i8, ptr %b, i64 0",
        "%b1 = getelementptr i8, ptr %b, i64 64",
    ]
    for number, row, column in _registers(high):
        if column == 0:
            lines.append(_load(_A + row, f"a{row}", "a"))
        if row == 0:
            lines.append(_load(_B + column, f"b{column}", "b"))
        operands = f"i8 {number}, i8 {_A + row}, i8 {_B + column}"
        lines.append(f"call void @llvm.x86.tdpbf16ps({operands})")
    return Intrinsic(
        f"func @{name}(a: bf16[{ROWS * high}, {DEPTH}], b: bf16[{DEPTH // 2}, {COLUMNS}, 2],"
        f" out c: f32[{ROWS * high}, {COLUMNS}]) {{"
        f" for i, j, k, p in serial({ROWS * high}, {COLUMNS}, {DEPTH // 2}, 2) {{"
        f" c[i, j] += f32(a[i, k * 2 + p]) * f32(b[k, j, p]) }} }}",
        tile="mma.packed",
        arch="x86_64",
        features=_FEATURES,
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        state=AMX_STATE,
        register_operand="c",
    )


def _load(register: int, pointer: str, operand: str) -> str:
    arguments = f"i8 {register}, ptr %{pointer}, i64 %rows.{operand}"
    return f"call void @llvm.x86.tileloadd64({arguments})"


def _store(name: str, high: int) -> Intrinsic:
    lines = [f"%skip = mul i64 %rows.c, {ROWS}"]
    for number, row, column in _registers(high):
        start = "%c" if row == 0 else "%lower"
        if row == 1 and column == 0:
            lines.append("%lower = getelementptr i8, ptr %c, i64 %skip")
        lines.append(f"%p{number} = getelementptr i8, ptr {start}, i64 {64 * column}")
        arguments = f"i8 {number}, ptr %p{number}, i64 %rows.c"
        lines.append(f"call void @llvm.x86.tilestored64({arguments})")
    return Intrinsic(
        f"func @{name}(a: f32[{ROWS * high}, {COLUMNS}],"
        f" out c: f32[{ROWS * high}, {COLUMNS}]) {{"
        f" for i, j in serial({ROWS * high}, {COLUMNS}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="x86_64",
        features=_FEATURES,
        llvm=function_text(name, "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c", lines),
        strided=True,
        state=AMX_STATE,
        register_operand="a",
    )


AMX: dict[str, Intrinsic] = {
    name: make(name, high)
    for high in BLOCKS
    for name, make in zip(amx_names(ROWS * high), (_zero, _step, _store), strict=True)
}
"""The rows of the table."""
