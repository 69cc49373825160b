"""Sums in fragments, handed among threads, so that they write whole sectors of memory.

    before    thread t has columns  t % 4 * 2 + 8 j  and the one behind, of rows  t / 4 + 8 i
    turned    thread t has columns  t % 4 * 8 + 32 j and the seven behind, of the same rows
    spread    thread t has one of each 32 columns, of all rows

A part of a sector is several times as dear. Turned, what follows the sum reads and writes 16 bytes
of f16 or bf16 at a time, and four threads write 64 bytes of a row. Rows of the result that begin
anywhere, as its columns are no multiple of eight, have no such pieces: spread, a warp writes 32
neighbours of one row at a time, each thread an element. Results of 16 bits that are rounded already
are turned as pairs, half as many words.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.nvidia.mma import BLOCKS, function_text
from tilewright.schedule.intrin.nvidia.mma_types import of_sums
from tilewright.schedule.intrin.nvidia.wgmma import COLUMNS, ROWS, UNEVEN

GROUP = 32
"""The columns that four threads have together, eight each, or all threads of a warp, one each."""
PAIRED = (32, 64, 96, 128)
"""How many columns a block of results may have that are rounded already."""
WIDE, ONE = 8, 1
"""The neighbours in a row that a thread has of turned sums, and of spread ones."""
_SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
_BLOCKS = (*BLOCKS, *((ROWS, columns) for columns in (*COLUMNS, *UNEVEN)))


def quad_transpose_name(rows: int, columns: int, total: str = "f32") -> str:
    """The intrinsic that hands a warp's block of sums around."""
    return f"{of_sums('turn', total)}_{rows}x{columns}"


def packed_transpose_name(dtype: str, rows: int, columns: int) -> str:
    """The intrinsic that hands a warp's block of rounded results around."""
    return f"turn_{dtype}_{rows}x{columns}"


def row_transpose_name(rows: int, columns: int, total: str = "f32") -> str:
    """The intrinsic that gives each thread of a warp columns of its block of sums."""
    return f"{of_sums('spread', total)}_{rows}x{columns}"


# The bits of a lane's number, and the words of two threads that differ in that bit which each gives
# the other one of: the bit of the lane and that of the word change places.
_Rounds = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
_TURNED: _Rounds = ((1, ((0, 1), (2, 3))), (2, ((0, 2), (1, 3))))
_SPREAD: _Rounds = (
    (16, ((0, 4), (1, 5), (2, 6), (3, 7))),
    (8, ((0, 2), (1, 3), (4, 6), (5, 7))),
    (4, ((0, 1), (2, 3), (4, 5), (6, 7))),
)


def _begin(rounds: _Rounds) -> Iterator[str]:
    yield "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()"
    for bit, _ in rounds:
        yield f"%lane{bit} = and i32 %lane, {bit}"
        yield f"%set{bit} = icmp ne i32 %lane{bit}, 0"


def _row(word: str, row: int) -> Iterator[str]:
    """Where a row of one of the blocks begins."""
    yield f"%{word}{row}.far = mul i64 %rows.{word}, {row}"
    yield f"%{word}{row} = getelementptr i8, ptr %{word}, i64 %{word}{row}.far"


def _spread_lines(rows: int, columns: int) -> Iterator[str]:
    yield from _begin(_SPREAD)
    for row in range(rows):
        yield from _row("c", row)
    for row in range(0, rows, 8):
        yield from _row("a", row)
        for column in range(0, columns, GROUP):
            tag = f"%x{row}.{column}"
            places = [column + 8 * (n // 2) + n % 2 for n in range(8)]
            words = [f"{tag}.{n}" for n in range(8)]
            yield from _loaded(words, row, places)
            yield from _handed(tag, words, _SPREAD)
            for n, word in enumerate(words):
                yield f"{tag}.to{n} = getelementptr float, ptr %c{row + n}, i64 {column}"
                yield f"store i32 {word}, ptr {tag}.to{n}, align 4"


def _lines(rows: int, columns: int) -> Iterator[str]:
    yield from _begin(_TURNED)
    number = 0
    for row in range(0, rows, 8):
        for word in "ac":
            yield from _row(word, row)
        for column in range(0, columns, GROUP):
            for pair in range(2):
                yield from _four(number, row, column, pair)
                number += 1


def _pair_lines(rows: int, columns: int) -> Iterator[str]:
    """The same of elements of 16 bits, a pair in a word."""
    yield from _begin(_TURNED)
    for row in range(0, rows, 8):
        for word in "ac":
            yield from _row(word, row)
        for column in range(0, columns, GROUP):
            tag = f"%x{row}.{column}"
            words = [f"{tag}.{n}" for n in range(4)]
            yield from _loaded(words, row, [(column + 8 * n) // 2 for n in range(4)])
            yield from _handed(tag, words, _TURNED)
            for n, word in enumerate(words):
                place = f"{tag}.to{n}"
                yield f"{place} = getelementptr i32, ptr %c{row}, i64 {column // 2 + n}"
                yield f"store i32 {word}, ptr {place}, align 4"


def _four(number: int, row: int, column: int, pair: int) -> Iterator[str]:
    """Four words of four threads: each gives the others one, and keeps one."""
    words = [f"%x{number}.{n}" for n in range(4)]
    yield from _loaded(words, row, [column + 8 * n + pair for n in range(4)])
    yield from _handed(f"%x{number}", words, _TURNED)
    for n, word in enumerate(words):
        place = f"%y{number}.{n}"
        yield f"{place} = getelementptr float, ptr %c{row}, i64 {column + 2 * n + pair}"
        yield f"store i32 {word}, ptr {place}, align 4"


def _loaded(words: list[str], row: int, places: list[int]) -> Iterator[str]:
    for word, place in zip(words, places, strict=True):
        yield f"{word}.at = getelementptr float, ptr %a{row}, i64 {place}"
        yield f"{word} = load i32, ptr {word}.at, align 4"


def _handed(tag: str, words: list[str], rounds: _Rounds) -> Iterator[str]:
    """Hand words around; `words` are then those that a thread has."""
    for bit, pairs in rounds:
        for low, high in pairs:
            a, b, x = words[low], words[high], f"{tag}.{bit}.{low}{high}"
            yield f"{x}.given = select i1 %set{bit}, i32 {a}, i32 {b}"
            given = f"i32 -1, i32 {x}.given, i32 {bit}, i32 31"
            yield f"{x}.got = call i32 @{_SHUFFLE}({given})"
            yield f"{x}.low = select i1 %set{bit}, i32 {x}.got, i32 {a}"
            yield f"{x}.high = select i1 %set{bit}, i32 {b}, i32 {x}.got"
            words[low], words[high] = f"{x}.low", f"{x}.high"


def _intrinsic(
    name: str, rows: int, columns: int, lines: Iterator[str], width: int, dtype: str = "f32"
) -> Intrinsic:
    return Intrinsic(
        f"func @{name}(a: {dtype}[{rows}, {columns}], out c: {dtype}[{rows}, {columns}])"
        f" {{ for i, j in serial({rows}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c", [*lines]),
        strided=True,
        turns=width,
    )


TURN: dict[str, Intrinsic] = {
    **{
        name: _intrinsic(name, ROWS, columns, _pair_lines(ROWS, columns), WIDE, dtype)
        for dtype in ("bf16", "f16")
        for columns in PAIRED
        for name in (packed_transpose_name(dtype, ROWS, columns),)
    },
    **{
        name: _intrinsic(name, *block, lines(*block), width, total)
        for total in ("f32", "i32")
        for block in _BLOCKS
        if block[1] % GROUP == 0
        for name, lines, width in (
            (quad_transpose_name(*block, total), _lines, WIDE),
            (row_transpose_name(*block, total), _spread_lines, ONE),
        )
    },
}
"""The rows of the table."""
