"""Warp shuffles of accumulator fragments, so that the epilogue accesses full sectors of memory.

    before             lane t has columns  t % 4 * 2 + 8 j  and the next, of rows  t / 4 + 8 i
    quad transpose     lane t has columns  t % 4 * 8 + 32 j and the next seven, of the same rows
    row transpose      lane t has one of each 32 columns, of all rows

Partial sectors cost several times as much. After a quad transpose the epilogue reads and writes 16
bytes of f16 or bf16 at a time, and four lanes write 64 bytes of a row. Where the number of columns
is no multiple of eight, rows of the result are not aligned to such vectors: after a row transpose a
warp writes 32 neighbours of one row at a time, each lane one element. Results already rounded to 16
bits are transposed as packed pairs, in half as many shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable, function_text
from tilewright.schedule.intrin.nvidia.mma import WARP_TILES
from tilewright.schedule.intrin.nvidia.mma_types import with_accumulator
from tilewright.schedule.intrin.nvidia.wgmma import K_MAJOR_ONLY_N, WARP_M, WGMMA_N

SHUFFLE_COLUMNS = 32
"""The columns that the four lanes of a quad have together, or all lanes of a warp, one each."""
PACKED_N = (32, 64, 96, 128, 192, 256)
"""The columns that a block of packed 16-bit results may have."""
QUAD_ELEMENTS, ROW_ELEMENTS = 8, 1
"""The neighbours in a row that a lane has after a quad transpose, and after a row transpose."""
_SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
_TILES = (*WARP_TILES, *((WARP_M, n) for n in (*WGMMA_N, *K_MAJOR_ONLY_N)))


def quad_transpose_name(m: int, n: int, acc: str = "f32") -> str:
    """The intrinsic that transposes a warp's block of accumulators within quads of lanes."""
    return f"{with_accumulator('quad_transpose', acc)}_{m}x{n}"


def packed_transpose_name(dtype: str, m: int, n: int) -> str:
    """The same of results already rounded to 16 bits, two in a register."""
    return f"packed_transpose_{dtype}_{m}x{n}"


def row_transpose_name(m: int, n: int, acc: str = "f32") -> str:
    """The intrinsic that gives each lane of a warp columns of its block of accumulators."""
    return f"{with_accumulator('row_transpose', acc)}_{m}x{n}"


# Rounds of a butterfly: a bit of the lane index, and the pairs of registers of which two lanes that
# differ in that bit exchange one. The bit of the lane and that of the register are swapped.
_Rounds = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
_QUAD: _Rounds = ((1, ((0, 1), (2, 3))), (2, ((0, 2), (1, 3))))
_ROW: _Rounds = (
    (16, ((0, 4), (1, 5), (2, 6), (3, 7))),
    (8, ((0, 2), (1, 3), (4, 6), (5, 7))),
    (4, ((0, 1), (2, 3), (4, 5), (6, 7))),
)


def _lane_bits(rounds: _Rounds) -> Iterator[str]:
    yield "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()"
    for bit, _ in rounds:
        yield f"%lane{bit} = and i32 %lane, {bit}"
        yield f"%set{bit} = icmp ne i32 %lane{bit}, 0"


def _row_address(operand: str, row: int) -> Iterator[str]:
    """The address of a row of the source or the destination."""
    yield f"%{operand}{row}.far = mul i64 %rows.{operand}, {row}"
    yield f"%{operand}{row} = getelementptr i8, ptr %{operand}, i64 %{operand}{row}.far"


def _row_transpose(m: int, n: int) -> Iterator[str]:
    yield from _lane_bits(_ROW)
    for row in range(m):
        yield from _row_address("c", row)
    for row in range(0, m, 8):
        yield from _row_address("a", row)
        for column in range(0, n, SHUFFLE_COLUMNS):
            tag = f"%x{row}.{column}"
            places = [column + 8 * (i // 2) + i % 2 for i in range(8)]
            words = [f"{tag}.{i}" for i in range(8)]
            yield from _load(words, row, places)
            yield from _exchange(tag, words, _ROW)
            for i, word in enumerate(words):
                yield f"{tag}.to{i} = getelementptr float, ptr %c{row + i}, i64 {column}"
                yield f"store i32 {word}, ptr {tag}.to{i}, align 4"


def _quad_transpose(m: int, n: int) -> Iterator[str]:
    yield from _lane_bits(_QUAD)
    number = 0
    for row in range(0, m, 8):
        for operand in "ac":
            yield from _row_address(operand, row)
        for column in range(0, n, SHUFFLE_COLUMNS):
            for pair in range(2):
                yield from _transpose_four(number, row, column, pair)
                number += 1


def _packed_transpose(m: int, n: int) -> Iterator[str]:
    """The quad transpose of 16-bit elements, a pair in a register."""
    yield from _lane_bits(_QUAD)
    for row in range(0, m, 8):
        for operand in "ac":
            yield from _row_address(operand, row)
        for column in range(0, n, SHUFFLE_COLUMNS):
            tag = f"%x{row}.{column}"
            words = [f"{tag}.{i}" for i in range(4)]
            yield from _load(words, row, [(column + 8 * i) // 2 for i in range(4)])
            yield from _exchange(tag, words, _QUAD)
            for i, word in enumerate(words):
                place = f"{tag}.to{i}"
                yield f"{place} = getelementptr i32, ptr %c{row}, i64 {column // 2 + i}"
                yield f"store i32 {word}, ptr {place}, align 4"


def _transpose_four(number: int, row: int, column: int, pair: int) -> Iterator[str]:
    """Four registers of four lanes: each gives the others one, and keeps one."""
    words = [f"%x{number}.{i}" for i in range(4)]
    yield from _load(words, row, [column + 8 * i + pair for i in range(4)])
    yield from _exchange(f"%x{number}", words, _QUAD)
    for i, word in enumerate(words):
        place = f"%y{number}.{i}"
        yield f"{place} = getelementptr float, ptr %c{row}, i64 {column + 2 * i + pair}"
        yield f"store i32 {word}, ptr {place}, align 4"


def _load(words: list[str], row: int, places: list[int]) -> Iterator[str]:
    for word, place in zip(words, places, strict=True):
        yield f"{word}.at = getelementptr float, ptr %a{row}, i64 {place}"
        yield f"{word} = load i32, ptr {word}.at, align 4"


def _exchange(tag: str, words: list[str], rounds: _Rounds) -> Iterator[str]:
    """Shuffle registers between lanes; `words` are then those that a lane has."""
    for bit, pairs in rounds:
        for low, high in pairs:
            a, b, x = words[low], words[high], f"{tag}.{bit}.{low}{high}"
            yield f"{x}.sent = select i1 %set{bit}, i32 {a}, i32 {b}"
            sent = f"i32 -1, i32 {x}.sent, i32 {bit}, i32 31"
            yield f"{x}.got = call i32 @{_SHUFFLE}({sent})"
            yield f"{x}.low = select i1 %set{bit}, i32 {x}.got, i32 {a}"
            yield f"{x}.high = select i1 %set{bit}, i32 {b}, i32 {x}.got"
            words[low], words[high] = f"{x}.low", f"{x}.high"


def _intrinsic(
    name: str,
    m: int,
    n: int,
    lines: Callable[[int, int], Iterable[str]],
    elements: int,
    dtype: str,
) -> Intrinsic:
    return Intrinsic(
        f"func @{name}(a: {dtype}[{m}, {n}], out c: {dtype}[{m}, {n}])"
        f" {{ for i, j in serial({m}, {n}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c", lines(m, n)),
        strided=True,
        lane_elements=elements,
    )


FRAGMENT_SHUFFLES = IntrinsicTable(
    {
        **{
            name: partial(_intrinsic, name, WARP_M, n, _packed_transpose, QUAD_ELEMENTS, dtype)
            for dtype in ("bf16", "f16")
            for n in PACKED_N
            for name in (packed_transpose_name(dtype, WARP_M, n),)
        },
        **{
            name: partial(_intrinsic, name, *tile, lines, elements, acc)
            for acc in ("f32", "i32")
            for tile in _TILES
            if tile[1] % SHUFFLE_COLUMNS == 0
            for name, lines, elements in (
                (quad_transpose_name(*tile, acc), _quad_transpose, QUAD_ELEMENTS),
                (row_transpose_name(*tile, acc), _row_transpose, ROW_ELEMENTS),
            )
        },
    }
)
"""The entries of the table."""
