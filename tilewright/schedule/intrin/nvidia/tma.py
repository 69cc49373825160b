"""Copies of whole tiles to shared memory by the engine for it (`cp.async.bulk.tensor`, sm_90).

One thread says which tile of which matrix, and goes on. A place in shared memory (`mbarrier`)
counts the bytes of a turn: threads wait for it, turn after turn. The matrix is described by a
*tensor map*, which the host encodes and gives to the kernel; so the text is not called with the
address of the source but with that of the map, and the column and row at which the tile begins.

A row of a tile has 128 bytes, 64 elements of 16 bits, whose pieces change places as `wgmma` wants
them; longer ones lie in panels of 64 columns, all rows of one and then the next. Elements of f32
are rounded to tf32 on their way; those of 8 bits lie along the depth alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.nvidia.mma import function_text

PANEL = 64
"""The columns of a panel of elements of 16 bits."""
SIDES = (64, 128, 192, 256)
"""How many rows a tile of as many columns as a panel has, how many columns one of as many rows."""
WHOLE = ((128, 128), (160, 64), (96, 64))
"""Other tiles, rows and columns, of elements of 16 bits."""
# The types of elements, and their bytes.
_TYPES = {"bf16": 2, "f16": 2, "f32": 4, "i8": 1, "u8": 1}
_COPY = "llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d"
_EXPECT = "llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"
INIT = "llvm.nvvm.mbarrier.init.shared"
# What a thread has said of such places is known to the engine from here on.
FENCE = 'call void asm sideeffect "fence.mbarrier_init.release.cluster;", "~{memory}"()'


def tma_load_name(dtype: str, rows: int, columns: int) -> str:
    """The intrinsic that copies a tile."""
    return f"bulk_{dtype}_{rows}x{columns}"


def mbarrier_init_name(copies: int) -> str:
    """The intrinsic that lets a place count so many copies a turn."""
    return f"bulk_counter_{copies}"


def panel_of(bytes: int) -> int:
    """The columns of a panel of elements of so many bytes."""
    return PANEL * 2 // bytes


def _copy_lines(rows: int, columns: int, bytes: int) -> Iterator[str]:
    panel = panel_of(bytes)
    yield "%count = addrspacecast ptr %counter to ptr addrspace(3)"
    yield f"%s = call i64 @{_EXPECT}(ptr addrspace(3) %count, i32 {rows * columns * bytes})"
    for n in range(columns // panel):
        yield f"%to{n} = getelementptr i8, ptr %c, i64 {n * rows * PANEL * 2}"
        yield f"%wide{n} = addrspacecast ptr %to{n} to ptr addrspace(7)"
        yield f"%x{n} = add i32 %x, {n * panel}"
        what = f"ptr addrspace(7) %wide{n}, ptr addrspace(3) %count, ptr %map, i32 %x{n}, i32 %y"
        yield f"call void @{_COPY}({what}, i16 0, i64 0, i1 0, i1 0, i32 0)"


def _copy(name: str, dtype: str, rows: int, columns: int) -> Intrinsic:
    params = "ptr %c, ptr %map, i32 %x, i32 %y, ptr %counter"
    bytes = _TYPES[dtype]
    return Intrinsic(
        f"func @{name}(a: {dtype}[{rows}, {columns}], out c: {dtype}[{rows}, {columns}])"
        f" {{ for i, j in serial({rows}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, params, [*_copy_lines(rows, columns, bytes)]),
        strided=True,
        box=(rows, panel_of(bytes)),
    )


def _counter(name: str, copies: int) -> Intrinsic:
    lines = [
        "%near = addrspacecast ptr %c to ptr addrspace(3)",
        f"call void @{INIT}(ptr addrspace(3) %near, i32 {copies})",
        FENCE,
    ]
    return Intrinsic(
        f"func @{name}(out c: i64[1]) {{ for i in serial(1) {{ c[i] = 0 }} }}",
        tile="fill",
        arch="nvptx64",
        llvm=function_text(name, "ptr %c", lines),
    )


BULK: dict[str, Intrinsic] = {
    **{mbarrier_init_name(n): _counter(mbarrier_init_name(n), n) for n in (1, 2)},
    **{
        name: _copy(name, dtype, rows, columns)
        for dtype, bytes in _TYPES.items()
        for side in SIDES
        for rows, columns in ((side, panel_of(bytes)), (panel_of(bytes), side))
        if columns % panel_of(bytes) == 0
        for name in (tma_load_name(dtype, rows, columns),)
    },
    **{
        name: _copy(name, dtype, rows, columns)
        for dtype in ("bf16", "f16")
        for rows, columns in WHOLE
        for name in (tma_load_name(dtype, rows, columns),)
    },
}
"""The rows of the table."""
