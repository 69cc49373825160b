"""`wgmma`: products of f16 and bf16 by four warps at once, operands straight from shared memory.

    wgmma.m64n256k16  c[m, n] += a[m, k] * b[k, n]      64 x N x 16, c in f32

Operands of f32, rounded to tf32 before they come there: 64 x N x 8, and both lie along the depth.
So do those of 8-bit integers, summed in i32: 64 x N x 32.

Four warps with neighbouring numbers do it together, each has 16 of the 64 rows of sums, spread over
its threads as by `mma.sync` (see `mma.py`). So to a schedule it is an instruction of one warp, for
sixteen rows; the left operands of four neighbours must lie one behind the other, unless they are
fragments. A row of an operand in shared memory has 64 elements, 128 bytes, whose pieces change
places as for `mma.sync`; longer rows are in panels of 64 columns, all rows of one and then the
next. Operands lie at multiples of 1024 bytes.

A fragment that is made before a loop and read in each turn of it is `k`, kept: each turn takes it
over into other registers. Where a turn branches between two products, ptxas before CUDA 13.4, and
the drivers of that time, forget that the next turn reads the fragment again, and use its registers
for something else.

An instruction waits for its own end. The one called `ahead` waits for the end of the one before it
and leaves itself under way: its operands stay, and nobody reads the sums, before the next one is
through or `settle` has waited; `ahead_2` waits for all but itself and the one before it. The one
called `begun` waits for nothing, and `first` is one of those that starts the sums;
`wgmma_settle_128_2` waits for all of them but the last two.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.intrin.intrinsic import Intrinsic
from tilewright.schedule.intrin.nvidia.mma import (
    fragment_lines,
    fragment_places,
    function_text,
    zero_row,
)
from tilewright.schedule.intrin.nvidia.mma_types import (
    BYTE_KINDS,
    SIGNS,
    llvm_sum,
    of_sums,
    operand_bytes,
    operand_types,
    product_text,
    sum_type,
)

ROWS, DEPTH = 16, 64
"""The rows of one warp, and the depth that one tile statement adds, in elements of 16 bits."""
COLUMNS = (256, 192, 128, 64)
"""How many columns of sums there may be."""
UNEVEN = (160, 96)
"""The same of operands of 16 bits along the depth: others lie in panels of 64 columns."""
BEGUN = (128, 64)
"""The same where nobody waits for the end."""
MOST_LEFT = 2
"""How many may still be under way behind a wait."""
GROUP = 4
"""The warps that do it together."""
HELD = "rk"
"""How a left operand lies that is a fragment: as it is, or kept from turn to turn of a loop."""
# The instruction for each kind of operands, and how many bytes of them each step of it adds.
_TYPES = {
    "bf16": "k16.f32.bf16.bf16",
    "f16": "k16.f32.f16.f16",
    "f32": "k8.f32.tf32.tf32",
    **{kind: f"k32.s32.{SIGNS[a]}.{SIGNS[b]}" for kind, (a, b) in BYTE_KINDS.items()},
}
# The version of PTX that knows operands of which one is signed and the other is not.
_MIXED = ("ptx84",)
# The letter of a register for a sum of each type.
_REGISTERS = {"f32": "f", "i32": "r"}
_STEP = 32
_STEPS = DEPTH * 2 // _STEP
# Bits of a descriptor: rows of 128 bytes whose pieces change places, eight of them 1024 bytes.
_SWIZZLED = (1 << 62) | (64 << 32)
# From one panel of columns to the next, in units of 16 bytes.
_PANEL = DEPTH * 128 // 16


def wgmma_names(kind: str, columns: int, right: str, left: str = "n") -> tuple[str, str]:
    """The intrinsics that start and add to sixteen rows of sums; operands as in `mma.py`."""
    return _zero_name(sum_type(kind), columns), f"wgmma_{kind}_{columns}_{left}{right}"


def _zero_name(total: str, columns: int) -> str:
    return f"{of_sums('wgmma_zero', total)}_{columns}"


def wgmma_depth(bytes: int) -> int:
    """The depth that one tile statement adds, of elements of so many bytes."""
    return DEPTH * 2 // bytes


def wgmma_orders(kind: str) -> tuple[str, ...]:
    """How operands may lie: only those of 16 bits are turned on their way."""
    return ("nn", "nt", "rn", "rt", "kn", "kt") if operand_bytes(kind) == 2 else ("nt",)


def settle_name(columns: int, left: int = 0, total: str = "f32") -> str:
    """The intrinsic that waits for what is under way on sixteen rows of sums, but the last few."""
    return f"{of_sums('wgmma_settle', total)}_{columns}" + (f"_{left}" if left else "")


def begun_name(name: str, first: bool) -> str:
    """The intrinsic that does the same and waits for nothing; `first` where sums start with it."""
    return f"{name}_{'first' if first else 'begun'}"


def ahead_name(name: str, left: int = 1) -> str:
    """The intrinsic that does the same and leaves so many under way, itself among them."""
    return f"{name}_ahead" + (f"_{left}" if left > 1 else "")


def _descriptor(word: str, leading: int) -> Iterator[str]:
    """Where an operand begins and how it lies, as a number."""
    w = word
    yield f"%{w}.bits = and i32 %{w}.start, 262143"
    yield f"%{w}.units = lshr i32 %{w}.bits, 4"
    yield f"%{w}.wide = zext i32 %{w}.units to i64"
    yield f"%{w}.d0 = or i64 %{w}.wide, {_SWIZZLED | leading << 16}"


def _shared_rows() -> Iterator[str]:
    """A left operand in shared memory: each warp tells where the rows of all four begin."""
    yield "%thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
    yield "%number = lshr i32 %thread, 5"
    yield f"%member = and i32 %number, {GROUP - 1}"
    yield "%rows.before = shl i32 %member, 11"
    yield "%a.near = addrspacecast ptr %a to ptr addrspace(3)"
    yield "%a.n = ptrtoint ptr addrspace(3) %a.near to i32"
    yield "%a.start = sub i32 %a.n, %rows.before"
    yield from _descriptor("a", 1)
    yield from _steps("a", _STEP // 16)


def descriptors(right: str) -> Iterator[str]:
    """The right operand, in shared memory: where each step of it begins."""
    yield "%b.near = addrspacecast ptr %b to ptr addrspace(3)"
    yield "%b.start = ptrtoint ptr addrspace(3) %b.near to i32"
    yield from _descriptor("b", 1 if right == "t" else _PANEL)
    yield from _steps("b", _STEP // 16 if right == "t" else _STEP // 2 * 128 // 16)


def _steps(word: str, units: int) -> Iterator[str]:
    """The descriptors of each step."""
    for n in range(1, _STEPS):
        yield f"%{word}.d{n} = add i64 %{word}.d0, {n * units}"


def _step(
    name: str, kind: str, columns: int, order: str, left: int, first: bool = False
) -> Intrinsic:
    """A step; `left` is how many stay under way behind it, all of them if negative."""
    held, right = order[0] in HELD, order[1]
    own = fragment_lines("a", _STEPS, "i32") if held else _shared_rows()
    lines = [*own, *descriptors(right), *_multiply(kind, columns, order, left, first)]
    depth, total = wgmma_depth(operand_bytes(kind)), sum_type(kind)
    b = f"[{columns}, {depth}]" if right == "t" else f"[{depth}, {columns}]"
    summed = product_text(kind, "a[i, k]", "b[j, k]" if right == "t" else "b[k, j]")
    one, other = operand_types(kind)
    return Intrinsic(
        f"func @{name}(a: {one}[{ROWS}, {depth}], b: {other}{b}, out c: {total}[{ROWS}, {columns}])"
        f" {{ for i, j, k in serial({ROWS}, {columns}, {depth}) {{ c[i, j] += {summed} }} }}",
        tile=f"mma.n{right}",
        arch="nvptx64",
        features=() if one == other else _MIXED,
        llvm=function_text(
            name, "ptr %a, i64 %rows.a, ptr %b, i64 %rows.b, ptr %c, i64 %rows.c", lines
        ),
        strided=True,
        swizzled=True,
        panels=("a", "b"),
        proxy=True,
        ahead="" if left or held else ahead_name(name),
        settle=settle_name(columns, total=total),
    )


def _multiply(kind: str, columns: int, order: str, left: int, first: bool = False) -> Iterator[str]:
    """Four steps, and the wait for them, or for those before them."""
    count = columns // 2
    before = 0 if first else count
    held = order[0] in HELD
    sums = ", ".join(f"${n}" for n in range(count))
    given: list[str] = []
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}{_TYPES[kind]}"
    taken, steps = [f".reg .b32 kept<{4 * _STEPS}>;"] if order[0] == "k" else [], []
    for n in range(_STEPS):
        own = [f"i32 %a{n}.{part}" for part in range(4)] if held else [f"i64 %a.d{n}"]
        start = count + before + len(given)
        words = [f"${start + part}" for part in range(len(own))]
        if order[0] == "k":
            copies = [f"kept{4 * n + part}" for part in range(4)]
            # The bits that a word has in common with itself: what ptxas takes for no copy.
            taken += [
                f"lop3.b32 {copy}, {word}, {word}, {word}, 0x80;"
                for copy, word in zip(copies, words, strict=True)
            ]
            words = copies
        rows = f"{{{', '.join(words)}}}" if held else words[0]
        adds = "q" if first and not n else "p"
        steps.append(
            f"{name} {{{sums}}}, {rows}, ${start + len(own)}, {adds}{_suffix(kind, order)};"
        )
        given += [*own, f"i64 %b.d{n}"]
    text = ["{", ".reg .pred p;", "setp.eq.b32 p, 0, 0;", *taken]
    text += [".reg .pred q;", "setp.ne.b32 q, 0, 0;"] if first else []
    text += ["wgmma.fence.sync.aligned;", *steps, "wgmma.commit_group.sync.aligned;"]
    text += [f"wgmma.wait_group.sync.aligned {left};"] if left >= 0 else []
    yield from on_sums(columns, [*text, "}"], given, first, sum_type(kind))


def _suffix(kind: str, order: str) -> str:
    """What an instruction is told of its operands: factors of floats, and which are turned."""
    if kind in BYTE_KINDS:
        return ""
    if kind == "f32":
        return ", 1, 1"
    turned = "0" if order[1] == "t" else "1"
    return f", 1, 1, {turned}" if order[0] in HELD else f", 1, 1, 0, {turned}"


def on_sums(
    columns: int, text: list[str], more: list[str], first: bool = False, total: str = "f32"
) -> Iterator[str]:
    """Instructions that change, or start, a thread's sums, which they know as `$0` and so on."""
    count, sum_word = columns // 2, llvm_sum(total)
    places = []
    for number, _, _, lines in fragment_places(ROWS, columns):
        yield from lines
        places += [f"%p{number}.{n}" for n in range(4)]
    old = [] if first else [f"%old{n}" for n in range(count)]
    for register, place in zip(old, places, strict=False):
        yield f"{register} = load {sum_word}, ptr {place}, align 4"
    body = "\\0A".join(text)
    own = ("=&" if first else "=") + _REGISTERS[total]
    made = [own] * count + [str(n) for n in range(len(old))]
    made += ["r" if what.startswith("i32") else "l" for what in more]
    given = [*(f"{sum_word} {register}" for register in old), *more]
    kind = f"{{ {', '.join([sum_word] * count)} }}"
    constraints = ",".join([*made, "~{memory}"])
    yield f'%new = call {kind} asm sideeffect "{body}", "{constraints}"({", ".join(given)})'
    for n, place in enumerate(places):
        yield f"%new{n} = extractvalue {kind} %new, {n}"
        yield f"store {sum_word} %new{n}, ptr {place}, align 4"


def _settle(columns: int, left: int, total: str) -> Intrinsic:
    """The wait for all that is under way but the last few."""
    name = settle_name(columns, left, total)
    wait = [f"wgmma.wait_group.sync.aligned {left};"]
    return Intrinsic(
        f"func @{name}(a: {total}[{ROWS}, {columns}], out c: {total}[{ROWS}, {columns}])"
        f" {{ for i, j in serial({ROWS}, {columns}) {{ c[i, j] = a[i, j] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(
            name,
            "ptr %a, i64 %rows.a, ptr %c, i64 %rows.c",
            [*on_sums(columns, wait, [], total=total)],
        ),
        strided=True,
    )


WGMMA: dict[str, Intrinsic] = {
    **{
        name: zero_row(name, ROWS, columns, total)
        for total in _REGISTERS
        for columns in (*COLUMNS, *(UNEVEN if total == "f32" else ()))
        for name in (_zero_name(total, columns),)
    },
    **{
        f"{name}{word}": _step(f"{name}{word}", kind, columns, order, left)
        for kind in _TYPES
        for columns in COLUMNS
        for order in wgmma_orders(kind)
        for name in (wgmma_names(kind, columns, order[1], order[0])[1],)
        for left, word in enumerate(("", "_ahead") if order[0] == "n" else ("",))
    },
    **{
        f"{name}{word}": _step(f"{name}{word}", dtype, columns, "nt", left)
        for dtype in ("bf16", "f16")
        for columns in UNEVEN
        for name in (wgmma_names(dtype, columns, "t")[1],)
        for left, word in enumerate(("", "_ahead"))
    },
    **{
        made: _step(made, dtype, columns, order, MOST_LEFT)
        for dtype in ("bf16", "f16")
        for columns in BEGUN
        for order in ("nn", "nt")
        for made in (ahead_name(wgmma_names(dtype, columns, order[1])[1], MOST_LEFT),)
    },
    **{
        begun_name(name, first): _step(begun_name(name, first), dtype, columns, order, -1, first)
        for dtype in ("bf16", "f16")
        for columns in BEGUN
        for order in wgmma_orders(dtype)
        for name in (wgmma_names(dtype, columns, order[1], order[0])[1],)
        for first in (False, True)
    },
    **{
        settle_name(columns, left, total): _settle(columns, left, total)
        for total, most in (("f32", MOST_LEFT), ("i32", 0))
        for columns in (*COLUMNS, *(UNEVEN if total == "f32" else ()))
        for left in range(most + 1)
    },
}
"""The rows of the table."""
