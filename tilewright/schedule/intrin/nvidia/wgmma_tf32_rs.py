"""TF32 `wgmma` with an M-major A, which threads load from shared memory to registers (RS).

    wgmma.m64n256k8  c[m, n] += a[k, m] * b[n, k]      of f32, rounded to TF32 before

`wgmma` takes 32-bit operands from shared memory K-major only, but A may come from registers. A lane
has rows `lane / 4` and the eighth after it, at `k = lane % 4` and the fourth after it. Panels of 32
rows have 128 swizzled bytes for each `k`. Lanes of the upper rows load the second `k` first, so
that no two lanes access one bank.

The registers of a step stay as they are while up to two steps are in flight; there are four sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable, function_text
from tilewright.schedule.intrin.nvidia.wgmma import (
    WARP_M,
    WGMMA_N,
    async_name,
    b_descriptors,
    on_accumulators,
    wait_name,
    wgmma_k,
    wgmma_names,
)

_K = wgmma_k(4)
# The K of one instruction, and the bytes from one `k` to the next.
_STEP_K, _ROW_BYTES = 8, 128
# Instructions that stay in flight behind one.
_IN_FLIGHT = 2


def _addresses() -> Iterator[str]:
    """The addresses of a lane's words of the first step: two `k`, of two rows each."""
    yield "%lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()"
    yield "%q = and i32 %lane, 3"
    yield "%g = lshr i32 %lane, 2"
    yield "%upper = lshr i32 %lane, 4"
    yield "%row = shl i32 %g, 2"
    yield "%a.near = addrspacecast ptr %a to ptr addrspace(3)"
    yield "%a.n = ptrtoint ptr addrspace(3) %a.near to i32"
    yield "%a.row = add i32 %a.n, %row"
    for load in range(2):
        yield f"%far{load} = xor i32 %upper, {load}"
        yield f"%four{load} = shl i32 %far{load}, 2"
        yield f"%k{load} = or disjoint i32 %q, %four{load}"
        yield f"%down{load} = mul i32 %k{load}, {_ROW_BYTES}"
        yield f"%plain{load} = add i32 %a.row, %down{load}"
        yield f"%order{load} = shl i32 %k{load}, 4"
        yield f"%at{load}.0 = xor i32 %plain{load}, %order{load}"
        yield f"%at{load}.1 = xor i32 %at{load}.0, 32"


def _text(n: int, pending: int) -> tuple[list[str], list[str]]:
    """The instructions of a statement, and their operands besides the accumulators."""
    count = n // 2
    accumulators = ", ".join(f"${i}" for i in range(count))
    given = [f"i32 %at{load}.{half}" for load in range(2) for half in range(2)]
    given += ["i32 %upper", *(f"i64 %b.d{step}" for step in range(_K // _STEP_K))]
    places = [f"${2 * count + i}" for i in range(len(given))]
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k8.f32.tf32.tf32"
    text = ["{", ".reg .pred p, u;", ".reg .b32 w<4>, a<16>;", "setp.eq.b32 p, 0, 0;"]
    text.append(f"setp.ne.b32 u, {places[4]}, 0;")
    steps = _K // _STEP_K
    for step in range(steps):
        own = [f"a{4 * step + part}" for part in range(4)]
        for word in range(4):
            text.append(f"ld.shared.b32 w{word}, [{places[word]}+{step * _STEP_K * _ROW_BYTES}];")
        for half in range(2):
            text.append(f"selp.b32 {own[half]}, w{2 + half}, w{half}, u;")
            text.append(f"selp.b32 {own[2 + half]}, w{half}, w{2 + half}, u;")
        text.append("wgmma.fence.sync.aligned;")
        operands = f"{{{accumulators}}}, {{{', '.join(own)}}}, {places[5 + step]}"
        text.append(f"{name} {operands}, p, 1, 1;")
        text.append("wgmma.commit_group.sync.aligned;")
        waits = pending if step == steps - 1 else _IN_FLIGHT
        text.append(f"wgmma.wait_group.sync.aligned {waits};")
    return [*text, "}"], given


def _wgmma(name: str, n: int, pending: int) -> Intrinsic:
    """A k-tile; `pending` is how many instructions stay in flight behind it."""
    text, given = _text(n, pending)
    lines = [*_addresses(), *b_descriptors("t"), *on_accumulators(n, text, given)]
    return Intrinsic(
        f"func @{name}(a: f32[{_K}, {WARP_M}], b: f32[{n}, {_K}],"
        f" out c: f32[{WARP_M}, {n}]) {{ for i, j, k in serial({WARP_M}, {n}, {_K})"
        f" {{ c[i, j] += a[k, i] * b[j, k] }} }}",
        tile="mma.tt",
        arch="nvptx64",
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
        swizzle_panels=("a", "b"),
        async_proxy=True,
        async_variant="" if pending else async_name(name),
        wait=wait_name(n),
    )


WGMMA_TF32_RS = IntrinsicTable(
    {
        made: partial(_wgmma, made, n, pending)
        for n in WGMMA_N
        for name in (wgmma_names("f32", n, "t", "t")[1],)
        for made, pending in ((name, 0), (async_name(name), _IN_FLIGHT))
    }
)
"""The entries of the table."""
