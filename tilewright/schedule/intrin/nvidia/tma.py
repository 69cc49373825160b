"""TMA: asynchronous copies of tiles to shared memory (`cp.async.bulk.tensor`, sm_90).

One thread issues the copy of a tile and does not wait. An mbarrier in shared memory counts the
bytes of each phase; threads wait for its parity. The source matrix is described by a *tensor map*,
which the host encodes and passes to the kernel. So the text is not called with the address of the
source but with that of the map, and with the column and row at which the tile begins.

A row of a tile has 128 bytes, 64 elements of 16 bits, swizzled as `wgmma` reads them. Longer rows
are stored in panels of 64 columns, all rows of one panel and then those of the next. Elements of
f32 are rounded to TF32 by the copy; tiles of 8-bit elements are K-major only. Where a tile reaches
beyond the matrix, zeros are copied; where that is one of several, they are further dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.schedule.intrin.intrinsic import Intrinsic, function_text

SWIZZLE_COLUMNS = 64
"""The columns of a swizzled panel of 16-bit elements: 128 bytes."""
SIDES = (64, 128, 192, 256)
"""The rows of tiles that are one panel wide, and the columns of tiles that have as many rows."""
OTHER_TILES = ((128, 128), (128, 192), (128, 256), (160, 64), (96, 64))
"""Further tiles of 16-bit elements: rows and columns."""
# Element types and their bytes.
_TYPES = {"bf16": 2, "f16": 2, "f32": 4, "i8": 1, "u8": 1}
_COPY = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile"
_EXPECT = "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"
MBARRIER_INIT = "llvm.nvvm.mbarrier.init.shared"
# Makes initialized mbarriers visible to the async proxy.
MBARRIER_FENCE = 'call void asm sideeffect "fence.mbarrier_init.release.cluster;", "~{memory}"()'


def tma_load_name(dtype: str, rows: int, columns: int, *, of_several: bool = False) -> str:
    """The intrinsic that copies a tile, of one matrix or of one of several."""
    return f"tma_load_{dtype}_{rows}x{columns}{'_of_several' if of_several else ''}"


def swizzle_columns(bytes: int) -> int:
    """The columns of a swizzled panel of elements of so many bytes."""
    return SWIZZLE_COLUMNS * 2 // bytes


def _copy_lines(rows: int, columns: int, bytes: int, at: Sequence[str]) -> Iterator[str]:
    """The copies of all panels of a tile; `at` are its coordinates, columns first."""
    panel = swizzle_columns(bytes)
    copy, further = f"{_COPY}.{len(at)}d", ", ".join(at[1:])
    yield "%count = addrspacecast ptr %mbarrier to ptr addrspace(3)"
    yield f"%s = call i64 @{_EXPECT}(ptr addrspace(3) %count, i32 {rows * columns * bytes})"
    for n in range(columns // panel):
        yield f"%to{n} = getelementptr i8, ptr %c, i64 {n * rows * SWIZZLE_COLUMNS * 2}"
        yield f"%wide{n} = addrspacecast ptr %to{n} to ptr addrspace(7)"
        yield f"%x{n} = add i32 %x, {n * panel}"
        what = f"ptr addrspace(7) %wide{n}, ptr addrspace(3) %count, ptr %map, i32 %x{n}, {further}"
        yield f"call void @{copy}({what}, i16 0, i64 0, i1 0, i1 0, i32 0)"


def _tma_load(name: str, dtype: str, rows: int, columns: int, of_several: bool) -> Intrinsic:
    at = ("i32 %x", "i32 %inner", "i32 %y", "i32 %outer") if of_several else ("i32 %x", "i32 %y")
    params = f"ptr %c, ptr %map, {', '.join(at)}, ptr %mbarrier"
    bytes = _TYPES[dtype]
    box = rows, swizzle_columns(bytes)
    return Intrinsic(
        f"func @{name}(a: {dtype}[{rows}, {columns}], out c: {dtype}[{rows}, {columns}])"
        f" {{ for i, j in serial({rows}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, params, _copy_lines(rows, columns, bytes, at)),
        strided=True,
        tma_box=(1, box[0], 1, box[1]) if of_several else box,
        zero_fills=True,
    )


TMA: dict[str, Intrinsic] = {
    **{
        name: _tma_load(name, dtype, rows, columns, of_several)
        for dtype, bytes in _TYPES.items()
        for side in SIDES
        for rows, columns in ((side, swizzle_columns(bytes)), (swizzle_columns(bytes), side))
        if columns % swizzle_columns(bytes) == 0
        for of_several in (False, True)
        for name in (tma_load_name(dtype, rows, columns, of_several=of_several),)
    },
    **{
        name: _tma_load(name, dtype, rows, columns, of_several)
        for dtype in ("bf16", "f16")
        for rows, columns in OTHER_TILES
        for of_several in (False, True)
        for name in (tma_load_name(dtype, rows, columns, of_several=of_several),)
    },
}
"""The entries of the table."""
