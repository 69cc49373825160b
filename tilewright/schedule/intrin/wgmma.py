"""`wgmma`: products of f16 and bf16 by four warps at once, operands straight from shared memory.

    wgmma.m64n256k16  c[m, n] += a[m, k] * b[k, n]      64 x N x 16, c in f32

Four warps with neighbouring numbers do it together, each has 16 of the 64 rows of sums, spread over
its threads as by `mma.sync` (see `mma.py`). So to a schedule it is an instruction of one warp, for
sixteen rows; the left operands of four neighbours must lie one behind the other. A row of an
operand in shared memory has 64 elements, 128 bytes, whose pieces change places as for `mma.sync`.
A right operand with neighbouring columns is in panels of 64 columns, all rows of one and then the
next. Both lie at multiples of 1024 bytes.

An instruction waits for its own end. The one called `ahead` waits for the end of the one before it
and leaves itself under way: its operands stay, and nobody reads the sums, before the next one is
through or `settle` has waited.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.mma import fragment_places, function_text, zero_row
from tilewright.schedule.intrin.row import Intrinsic

ROWS, DEPTH = 16, 64
"""The rows of one warp, and the depth that one tile statement adds."""
COLUMNS = (256, 128, 64)
"""How many columns of sums there may be."""
GROUP = 4
"""The warps that do it together."""
_STEP = 16
_TYPES = ("bf16", "f16")
# Bits of a descriptor: rows of 128 bytes whose pieces change places, eight of them 1024 bytes.
_SWIZZLED = (1 << 62) | (64 << 32)
# From one panel of columns to the next, in units of 16 bytes.
_PANEL = DEPTH * 128 // 16


def wgmma_names(dtype: str, columns: int, right: str) -> tuple[str, str]:
    """The intrinsics that start and add to sixteen rows of sums."""
    return f"wgmma_zero_{columns}", f"wgmma_{dtype}_{columns}_n{right}"


def settle_name(columns: int) -> str:
    """The intrinsic that waits for all that is under way on sixteen rows of sums."""
    return f"wgmma_settle_{columns}"


def _descriptor(word: str, leading: int) -> Iterator[str]:
    """Where an operand begins and how it lies, as a number."""
    w = word
    yield f"%{w}.bits = and i32 %{w}.start, 262143"
    yield f"%{w}.units = lshr i32 %{w}.bits, 4"
    yield f"%{w}.wide = zext i32 %{w}.units to i64"
    yield f"%{w}.d0 = or i64 %{w}.wide, {_SWIZZLED | leading << 16}"


def _step(name: str, dtype: str, columns: int, right: str, left: int) -> Intrinsic:
    """A step; `left` is how many stay under way behind it."""
    lines = [
        "%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "%number = lshr i32 %thread, 5",
        f"%member = and i32 %number, {GROUP - 1}",
        "%rows.before = shl i32 %member, 11",
        "%a.near = addrspacecast ptr %a to ptr addrspace(3)",
        "%a.n = ptrtoint ptr addrspace(3) %a.near to i32",
        "%a.start = sub i32 %a.n, %rows.before",
        "%b.near = addrspacecast ptr %b to ptr addrspace(3)",
        "%b.start = ptrtoint ptr addrspace(3) %b.near to i32",
        *_descriptor("a", 1),
        *_descriptor("b", 1 if right == "t" else _PANEL),
    ]
    ahead = {"a": _STEP * 2 // 16, "b": _STEP * 2 // 16 if right == "t" else _STEP * 128 // 16}
    for n in range(1, DEPTH // _STEP):
        lines += [f"%{w}.d{n} = add i64 %{w}.d0, {n * units}" for w, units in ahead.items()]
    lines += _multiply(dtype, columns, right, left)
    b, y = (f"[{columns}, {DEPTH}]", "j, k") if right == "t" else (f"[{DEPTH}, {columns}]", "k, j")
    return Intrinsic(
        f"func @{name}(a: {dtype}[{ROWS}, {DEPTH}], b: {dtype}{b}, out c: f32[{ROWS}, {columns}])"
        f" {{ for i, j, k in serial({ROWS}, {columns}, {DEPTH}) {{"
        f" c[i, j] += f32(a[i, k]) * f32(b[{y}]) }} }}",
        tile=f"mma.n{right}",
        arch="nvptx64",
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
        panels="" if right == "t" else "b",
        proxy=True,
        ahead="" if left else f"{name}_ahead",
        settle=settle_name(columns),
    )


def _multiply(dtype: str, columns: int, right: str, left: int) -> Iterator[str]:
    """Four steps of 16, and the wait for them, or for those before them."""
    count = columns // 2
    steps = range(DEPTH // _STEP)
    sums = ", ".join(f"${n}" for n in range(count))
    turned = 0 if right == "t" else 1
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype}"
    text = ["{", ".reg .pred p;", "setp.eq.b32 p, 0, 0;", "wgmma.fence.sync.aligned;"]
    for n in steps:
        descriptors = f"${2 * count + 2 * n}, ${2 * count + 2 * n + 1}"
        text.append(f"{name} {{{sums}}}, {descriptors}, p, 1, 1, 0, {turned};")
    text += ["wgmma.commit_group.sync.aligned;", f"wgmma.wait_group.sync.aligned {left};", "}"]
    yield from _on_sums(columns, text, [f"i64 %{w}.d{n}" for n in steps for w in "ab"])


def _on_sums(columns: int, text: list[str], more: list[str]) -> Iterator[str]:
    """Instructions that change a thread's sums, which they know as `$0` and so on."""
    count = columns // 2
    places = []
    for number, _, _, lines in fragment_places(ROWS, columns):
        yield from lines
        places += [f"%p{number}.{n}" for n in range(4)]
    for n, place in enumerate(places):
        yield f"%old{n} = load float, ptr {place}, align 4"
    body = "\\0A".join(text)
    made = ["=f"] * count + [str(n) for n in range(count)] + ["l"] * len(more)
    given = [*(f"float %old{n}" for n in range(count)), *more]
    kind = f"{{ {', '.join(['float'] * count)} }}"
    constraints = ",".join([*made, "~{memory}"])
    yield f'%new = call {kind} asm sideeffect "{body}", "{constraints}"({", ".join(given)})'
    for n, place in enumerate(places):
        yield f"%new{n} = extractvalue {kind} %new, {n}"
        yield f"store float %new{n}, ptr {place}, align 4"


def _settle(columns: int) -> Intrinsic:
    """The wait for all that is under way."""
    name = settle_name(columns)
    return Intrinsic(
        f"func @{name}(a: f32[{ROWS}, {columns}], out c: f32[{ROWS}, {columns}])"
        f" {{ for i, j in serial({ROWS}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(
            name,
            "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c",
            [*_on_sums(columns, ["wgmma.wait_group.sync.aligned 0;"], [])],
        ),
        strided=True,
    )


WGMMA: dict[str, Intrinsic] = {
    **{
        name: zero_row(name, ROWS, columns)
        for columns in COLUMNS
        for name in (wgmma_names("", columns, "")[0],)
    },
    **{
        f"{name}{word}": _step(f"{name}{word}", dtype, columns, right, left)
        for dtype in _TYPES
        for columns in COLUMNS
        for right in "nt"
        for name in (wgmma_names(dtype, columns, right)[1],)
        for left, word in enumerate(("", "_ahead"))
    },
    **{settle_name(columns): _settle(columns) for columns in COLUMNS},
}
"""The rows of the table."""
