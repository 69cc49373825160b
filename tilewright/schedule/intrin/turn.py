"""Sums in fragments, handed among four threads, so that each has eight neighbours of a row.

    before   thread t has columns  t % 4 * 2 + 8 j  and the one behind, for all j
    after    thread t has columns  t % 4 * 8 + 32 j and the seven behind

What follows the sum then reads and writes 16 bytes of f16 or bf16 at a time, and four threads write
64 bytes of a row: whole sectors of memory. A part of a sector is several times as dear.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.mma import BLOCKS, function_text
from tilewright.schedule.intrin.row import Intrinsic
from tilewright.schedule.intrin.wgmma import COLUMNS, ROWS

GROUP = 32
"""The columns that four threads have together, eight each."""
_SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
_BLOCKS = (*BLOCKS, *((ROWS, columns) for columns in COLUMNS))


def turn_name(rows: int, columns: int) -> str:
    """The intrinsic that hands a warp's block of sums around."""
    return f"turn_{rows}x{columns}"


def _lines(rows: int, columns: int) -> Iterator[str]:
    yield "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()"
    for bit in (1, 2):
        yield f"%lane{bit} = and i32 %lane, {bit}"
        yield f"%set{bit} = icmp ne i32 %lane{bit}, 0"
    number = 0
    for row in range(0, rows, 8):
        for word in "ac":
            yield f"%{word}{row}.far = mul i64 %rows.{word}, {row}"
            yield f"%{word}{row} = getelementptr i8, ptr %{word}, i64 %{word}{row}.far"
        for column in range(0, columns, GROUP):
            for pair in range(2):
                yield from _four(number, row, column, pair)
                number += 1


def _four(number: int, row: int, column: int, pair: int) -> Iterator[str]:
    """Four words of four threads: each gives the others one, and keeps one."""
    words = [f"%x{number}.{n}" for n in range(4)]
    for n, word in enumerate(words):
        yield f"{word}.at = getelementptr float, ptr %a{row}, i64 {column + 8 * n + pair}"
        yield f"{word} = load i32, ptr {word}.at, align 4"
    for bit, pairs in ((1, ((0, 1), (2, 3))), (2, ((0, 2), (1, 3)))):
        for low, high in pairs:
            a, b, x = words[low], words[high], f"%x{number}.{low}{high}"
            yield f"{x}.given = select i1 %set{bit}, i32 {a}, i32 {b}"
            given = f"i32 -1, i32 {x}.given, i32 {bit}, i32 31"
            yield f"{x}.got = call i32 @{_SHUFFLE}({given})"
            yield f"{x}.low = select i1 %set{bit}, i32 {x}.got, i32 {a}"
            yield f"{x}.high = select i1 %set{bit}, i32 {b}, i32 {x}.got"
            words[low], words[high] = f"{x}.low", f"{x}.high"
    for n, word in enumerate(words):
        place = f"%y{number}.{n}"
        yield f"{place} = getelementptr float, ptr %c{row}, i64 {column + 2 * n + pair}"
        yield f"store i32 {word}, ptr {place}, align 4"


def _turn(name: str, rows: int, columns: int) -> Intrinsic:
    return Intrinsic(
        f"func @{name}(a: f32[{rows}, {columns}], out c: f32[{rows}, {columns}])"
        f" {{ for i, j in serial({rows}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c", [*_lines(rows, columns)]
        ),
        strided=True,
        turns=True,
    )


TURN: dict[str, Intrinsic] = {
    name: _turn(name, rows, columns)
    for rows, columns in _BLOCKS
    if columns % GROUP == 0
    for name in (turn_name(rows, columns),)
}
"""The rows of the table."""
