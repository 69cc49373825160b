"""`wgmma` whose left operand lies across the depth: threads read it, four words for each step.

    wgmma.m64n256k8  c[m, n] += a[k, m] * b[n, k]      of f32, rounded to tf32 before

Instructions of four warps take operands of 32 bits from shared memory along the depth alone, but a
left one from registers as well. A thread has rows `lane / 4` and the eighth after it, at depths
`lane % 4` and the fourth after it. Panels of 32 rows have 128 bytes for each depth, whose pieces
change places; lanes of the upper rows read the second depth first, so that no two lanes meet in a
bank.

A step's words stay as they are while up to two steps are under way; there are registers for four.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.nvidia.mma import function_text
from tilewright.schedule.intrin.nvidia.wgmma import (
    COLUMNS,
    ROWS,
    descriptors,
    on_sums,
    settle_name,
    wgmma_depth,
    wgmma_names,
)

_DEPTH = wgmma_depth(4)
# The depth of one instruction, and the bytes from one depth to the next.
_STEP, _ROW = 8, 128
# Instructions that are under way behind one.
_UNDER_WAY = 2


def _addresses() -> Iterator[str]:
    """Where a thread's words of the first step lie: two depths, of two rows each."""
    yield "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()"
    yield "%q = and i32 %lane, 3"
    yield "%g = lshr i32 %lane, 2"
    yield "%upper = lshr i32 %lane, 4"
    yield "%row = shl i32 %g, 2"
    yield "%a.near = addrspacecast ptr %a to ptr addrspace(3)"
    yield "%a.n = ptrtoint ptr addrspace(3) %a.near to i32"
    yield "%a.row = add i32 %a.n, %row"
    for turn in range(2):
        yield f"%far{turn} = xor i32 %upper, {turn}"
        yield f"%four{turn} = shl i32 %far{turn}, 2"
        yield f"%k{turn} = or disjoint i32 %q, %four{turn}"
        yield f"%down{turn} = mul i32 %k{turn}, {_ROW}"
        yield f"%plain{turn} = add i32 %a.row, %down{turn}"
        yield f"%order{turn} = shl i32 %k{turn}, 4"
        yield f"%at{turn}.0 = xor i32 %plain{turn}, %order{turn}"
        yield f"%at{turn}.1 = xor i32 %at{turn}.0, 32"


def _text(columns: int, left: int) -> tuple[list[str], list[str]]:
    """The instructions of a statement, and what they are given besides the sums."""
    count = columns // 2
    sums = ", ".join(f"${n}" for n in range(count))
    given = [f"i32 %at{turn}.{half}" for turn in range(2) for half in range(2)]
    given += ["i32 %upper", *(f"i64 %b.d{n}" for n in range(_DEPTH // _STEP))]
    places = [f"${2 * count + n}" for n in range(len(given))]
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32"
    text = ["{", ".reg .pred p, u;", ".reg .b32 w<4>, a<16>;", "setp.eq.b32 p, 0, 0;"]
    text.append(f"setp.ne.b32 u, {places[4]}, 0;")
    steps = _DEPTH // _STEP
    for n in range(steps):
        own = [f"a{4 * n + part}" for part in range(4)]
        for word in range(4):
            text.append(f"ld.shared.b32 w{word}, [{places[word]}+{n * _STEP * _ROW}];")
        for half in range(2):
            text.append(f"selp.b32 {own[half]}, w{2 + half}, w{half}, u;")
            text.append(f"selp.b32 {own[2 + half]}, w{half}, w{2 + half}, u;")
        text.append("wgmma.fence.sync.aligned;")
        text.append(f"{name} {{{sums}}}, {{{', '.join(own)}}}, {places[5 + n]}, p, 1, 1;")
        waits = left if n == steps - 1 else _UNDER_WAY
        text.append("wgmma.commit_group.sync.aligned;")
        text.append(f"wgmma.wait_group.sync.aligned {waits};")
    return [*text, "}"], given


def _step(name: str, columns: int, left: int) -> Intrinsic:
    """A step; `left` is how many instructions stay under way behind it."""
    text, given = _text(columns, left)
    lines = [*_addresses(), *descriptors("t"), *on_sums(columns, text, given)]
    return Intrinsic(
        f"func @{name}(a: f32[{_DEPTH}, {ROWS}], b: f32[{columns}, {_DEPTH}],"
        f" out c: f32[{ROWS}, {columns}]) {{ for i, j, k in serial({ROWS}, {columns}, {_DEPTH})"
        f" {{ c[i, j] += a[k, i] * b[j, k] }} }}",
        tile="mma.tt",
        arch="nvptx64",
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
        panels=("a", "b"),
        proxy=True,
        ahead="" if left else f"{name}_ahead",
        settle=settle_name(columns),
    )


WGMMA_TURNED: dict[str, Intrinsic] = {
    f"{name}{word}": _step(f"{name}{word}", columns, left)
    for columns in COLUMNS
    for name in (wgmma_names("f32", columns, "t", "t")[1],)
    for left, word in ((0, ""), (_UNDER_WAY, "_ahead"))
}
"""The rows of the table."""
