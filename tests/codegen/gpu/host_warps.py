"""Instructions that the threads of a warp do together, on this machine: by functions in Python.

Each thread leaves what it gives in a slot of its warp; the last one that comes computes for all. A
copy that was started arrives as late as it may: when its thread waits for its group. What is
computed is in `host_products.py`.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import defaultdict, deque
from functools import partial
from itertools import product

import llvmlite.binding as llvm
import numpy as np

from tests.codegen.gpu import host_tma
from tests.codegen.gpu.host_products import COMPUTE, LANES, OPERANDS, SHARED_BYTES, under_way
from tests.codegen.gpu.host_tma import tma_text
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS, SIGNS

# Functions that a thread calls with its number, then pointers or numbers.
_POINTERS = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 2)

_TEXT = """
declare void @tw.py.ldmatrix(i64, ptr, ptr)
declare void @tw.py.ldmatrix.trans(i64, ptr, ptr)
declare void @tw.py.copy(i64, ptr, ptr)
declare void @tw.py.copy.word(i64, ptr, ptr)
declare void @tw.py.copy.half(i64, ptr, ptr)
declare void @tw.py.commit(i64, ptr, ptr)
declare void @tw.py.await(i64, ptr, ptr)
define internal i64 @tw.number() noinline {
  %n = call i32 @tw.thread.number()
  %wide = zext i32 %n to i64
  ret i64 %wide
}
define internal i32 @tw.tf32(float %x) noinline {
  %bits = bitcast float %x to i32
  %more = add i32 %bits, 4096
  %r = and i32 %more, -8192
  ret i32 %r
}
define internal i32 @tw.lane() noinline {
  %n = call i32 @tw.thread.number()
  %lane = and i32 %n, 31
  ret i32 %lane
}
define internal void @tw.copy(ptr %to, ptr %from) noinline {
  %n = call i64 @tw.number()
  call void @tw.py.copy(i64 %n, ptr %to, ptr %from)
  ret void
}
define internal void @tw.copy.word(ptr %to, ptr %from) noinline {
  %n = call i64 @tw.number()
  call void @tw.py.copy.word(i64 %n, ptr %to, ptr %from)
  ret void
}
@tw.zeros = internal constant [16 x i8] zeroinitializer, align 16
define internal void @tw.copy.padded(ptr %to, ptr %from, i32 %bytes) noinline {
  %all = icmp eq i32 %bytes, 16
  %origin = select i1 %all, ptr %from, ptr @tw.zeros
  call void @tw.copy(ptr %to, ptr %origin)
  ret void
}
define internal void @tw.copy.half(ptr %to, ptr %from) noinline {
  %n = call i64 @tw.number()
  call void @tw.py.copy.half(i64 %n, ptr %to, ptr %from)
  ret void
}
define internal void @tw.copy.half.padded(ptr %to, ptr %from, i32 %bytes) noinline {
  %all = icmp eq i32 %bytes, 8
  %origin = select i1 %all, ptr %from, ptr @tw.zeros
  call void @tw.copy.half(ptr %to, ptr %origin)
  ret void
}
define internal void @tw.copy.word.padded(ptr %to, ptr %from, i32 %bytes) noinline {
  %all = icmp eq i32 %bytes, 4
  %origin = select i1 %all, ptr %from, ptr @tw.zeros
  call void @tw.copy.word(ptr %to, ptr %origin)
  ret void
}
define internal void @tw.commit() noinline {
  %n = call i64 @tw.number()
  call void @tw.py.commit(i64 %n, ptr null, ptr null)
  ret void
}
define internal void @tw.await(i32 %groups) noinline {
  %n = call i64 @tw.number()
  %wide = zext i32 %groups to i64
  %p = inttoptr i64 %wide to ptr
  call void @tw.py.await(i64 %n, ptr %p, ptr null)
  ret void
}
"""
_FOUR = "{ i32, i32, i32, i32 }"
_SIGNS = ["_".join(SIGNS[t] for t in types) for types in BYTE_KINDS.values()]
# Turing's instructions, and the registers of their operands and sums.
SHORT = {"f16.k8": (3, 4), **{f"{signs}.k16": (2, 2) for signs in _SIGNS}}


def _ldmatrix(word: str) -> str:
    return f"""
define internal {_FOUR} @tw.ldmatrix{word}(ptr %from) noinline {{
  %out = alloca {_FOUR}
  %n = call i64 @tw.number()
  call void @tw.py.ldmatrix{word}(i64 %n, ptr %from, ptr %out)
  %r = load {_FOUR}, ptr %out
  ret {_FOUR} %r
}}
"""


def _mma(word: str, kind: str, total: str = "float", counts: tuple[int, int] = (6, 4)) -> str:
    """An instruction as a call; `counts` are the registers of operands and of sums."""
    operands, own = counts
    sums = f"{{ {', '.join([total] * own)} }}"
    words = [(f"%x{n}", kind) for n in range(operands)] + [(f"%c{n}", total) for n in range(own)]
    params = ", ".join(f"{type_} {given}" for given, type_ in words)
    stores = []
    for n, (given, type_) in enumerate(words):
        stores.append(f"  %s{n} = getelementptr i32, ptr %in, i64 {n}")
        stores.append(f"  store {type_} {given}, ptr %s{n}")
    body = "\n".join(stores)
    return f"""
declare void @tw.py.mma.{word}(i64, ptr, ptr)
define internal {sums} @tw.mma.{word}({params}) noinline {{
  %in = alloca [{len(words)} x i32]
  %out = alloca {sums}
{body}
  %n = call i64 @tw.number()
  call void @tw.py.mma.{word}(i64 %n, ptr %in, ptr %out)
  %r = load {sums}, ptr %out
  ret {sums} %r
}}
"""


_NAMES = {
    "llvm.nvvm.read.ptx.sreg.laneid": "tw.lane",
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3": "tw.ldmatrix",
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": "tw.ldmatrix.trans",
    "llvm.nvvm.mma.m16n8k16.row.col.bf16": "tw.mma.bf16",
    "llvm.nvvm.mma.m16n8k16.row.col.f32.f32": "tw.mma.f16",
    "llvm.nvvm.mma.m16n8k8.row.col.tf32": "tw.mma.tf32",
    **{
        f"llvm.nvvm.mma.m16n8k32.row.col.{'.'.join(dict.fromkeys(signs.split('_')))}": (
            f"tw.mma.{signs}"
        )
        for signs in _SIGNS
    },
    "llvm.nvvm.mma.m16n8k8.row.col.f32.f32": "tw.mma.f16.k8",
    **{
        f"llvm.nvvm.mma.m8n8k16.row.col.{'.'.join(dict.fromkeys(signs.split('_')))}": (
            f"tw.mma.{signs}.k16"
        )
        for signs in _SIGNS
    },
    "llvm.nvvm.f2tf32.rna": "tw.tf32",
    "llvm.nvvm.cp.async.cg.shared.global.16": "tw.copy",
    "llvm.nvvm.cp.async.ca.shared.global.4": "tw.copy.word",
    "llvm.nvvm.cp.async.ca.shared.global.8": "tw.copy.half",
    "llvm.nvvm.cp.async.ca.shared.global.8.s": "tw.copy.half.padded",
    "llvm.nvvm.cp.async.cg.shared.global.16.s": "tw.copy.padded",
    "llvm.nvvm.cp.async.ca.shared.global.4.s": "tw.copy.word.padded",
    "llvm.nvvm.cp.async.commit.group": "tw.commit",
    "llvm.nvvm.cp.async.wait.group": "tw.await",
}


def warp_text(text: str) -> str:
    """A module with those instructions as one that calls the functions here."""
    text = tma_text(text)
    for name, own in {**_NAMES, **host_tma.NAMES}.items():
        text = re.sub(rf"^declare [^\n]*@{re.escape(name)}\([^\n]*\n", "", text, flags=re.M)
        text = text.replace(f"@{name}(", f"@{own}(")
    place = r"getelementptr \(i8, ptr addrspace\(3\) (@[\w.$]+), i64 (\d+)\)"
    text = re.sub(
        rf"addrspacecast \(ptr addrspace\(3\) {place} to ptr\)",
        r"getelementptr (i8, ptr \1, i64 \2)",
        text,
    )
    text = text.replace(
        "external addrspace(3) global [0 x i8]",
        f"internal global [{SHARED_BYTES} x i8] zeroinitializer",
    )
    text = re.sub(
        r"addrspacecast ptr (%[\w.]+) to ptr addrspace\(\d\)",
        r"getelementptr i8, ptr \1, i64 0",
        text,
    )
    # Addresses of shared memory have 32 bits, those of this machine 64.
    text = re.sub(r"(define internal void @tw\.mma_.*?\n\})", _widened, text, flags=re.S)
    text, groups = _grouped(text)
    made = _ldmatrix("") + _ldmatrix(".trans") + _mma("f16", "<2 x half>")
    made += _mma("bf16", "i32") + _mma("tf32", "i32")
    made += "".join(_mma(signs, "i32", "i32") for signs in _SIGNS)
    made += _mma("f16.k8", "<2 x half>", counts=SHORT["f16.k8"])
    made += "".join(_mma(k, "i32", "i32", counts=SHORT[k]) for k in SHORT if k != "f16.k8")
    return re.sub(r" addrspace\([137]\)", "", text) + _TEXT + host_tma.TEXT + made + groups


_GROUPED = re.compile(
    r"call (\{[^}]*\}) asm sideeffect \"[^\"]*m64n(\d+)k\d+\.[fs]32\.(\w+)\.(\w+)[^\"]*"
    r"p(?:, 1, 1(?:, (0, )?(\d))?)?;[^\"]*commit_group\.sync\.aligned;"
    r"(?:[^\"]*wait_group\.sync\.aligned (\d);)?[^\"]*\", \"[^\"]*\""
)
_SETTLED = re.compile(
    r"call (\{[^}]*\}) asm sideeffect \"wgmma\.wait_group\.sync\.aligned (\d);[^\"]*\", \"[^\"]*\""
)
# What changes nothing on this machine: registers, and turns.
_NOTHING = re.compile(r"\n[^\n]*asm sideeffect \"(setmaxnreg|bar\.|[^\"]*bar\.arrive)[^\n]*")
# Nobody waits for a product that is only begun.
_MANY = 99


def _grouped(text: str) -> tuple[str, str]:
    """Instructions of four warps as calls, and what is called."""
    text = re.sub(r"\n[^\n]*asm sideeffect \"fence\.[^\n]*", "", text)
    shared = re.search(r"(@[\w.$]+\$shared) = internal global", text)
    made, called = {}, set[str]()

    def call(found: re.Match[str]) -> str:
        kind, columns, dtype, other, both, turned, left = found.groups()
        dtype = dtype if kind.count("float") else f"{dtype}_{other}"
        held = "x" if "ld.shared" in found[0] else "n" if both or turned is None else "r"
        turned = turned or "0"
        first = "q, 1, 1" in found[0]
        name = f"tw.wgmma.{columns}.{dtype}.{turned}.{left or _MANY}.{held}"
        assert shared is not None
        called.add(name)
        made[name + "f" * first] = _wgmma(name, kind, OPERANDS[held], shared[1], first)
        return f"call {kind} @{name}{'.first' * first}"

    def settle(found: re.Match[str]) -> str:
        kind = found[1]
        name = f"tw.settle.{2 * (kind.count(',') + 1)}.{found[2]}"
        assert shared is not None
        called.add(name)
        made[name] = _wgmma(name, kind, [], shared[1])
        return f"call {kind} @{name}"

    text = _SETTLED.sub(settle, _GROUPED.sub(call, _NOTHING.sub("", text)))
    names = (name.replace("tw.", "tw.py.") for name in sorted(called))
    declared = (f"declare void @{name}(i64, ptr, ptr)\n" for name in names)
    return text, "".join([*declared, *made.values()])


def _wgmma(name: str, kind: str, operands: list[str], shared: str, first: bool = False) -> str:
    """Sums and operands in a row, the address of the shared memory behind them.

    Sums that start with it are zero.
    """
    sums, total = kind.count(",") + 1, "float" if "float" in kind else "i32"
    words = sums + len(operands)
    given = [] if first else [f"{total} %c{n}" for n in range(sums)]
    given += [f"{word} %d{n}" for n, word in enumerate(operands)]
    stores = []
    zeros = [f"{total} zeroinitializer"] * sums if first else []
    for n, what in enumerate([*zeros, *given, f"ptr {shared}"]):
        stores.append(f"  %s{n} = getelementptr i64, ptr %in, i64 {n}")
        stores.append(f"  store {what}, ptr %s{n}")
    python = name.replace("tw.", "tw.py.")
    return f"""
define internal {kind} @{name}{".first" * first}({", ".join(given)}) noinline {{
  %in = alloca [{words + 1} x i64]
  %out = alloca {kind}
{chr(10).join(stores)}
  %n = call i64 @tw.number()
  call void @{python}(i64 %n, ptr %in, ptr %out)
  %r = load {kind}, ptr %out
  ret {kind} %r
}}
"""


def _widened(found: re.Match[str]) -> str:
    return "\n".join(map(_wide_line, found[1].split("\n")))


# Lines of what is read, multiplied and summed: in them words of 32 bits are no addresses.
_AS_THEY_ARE = (
    *("ldmatrix", "extractvalue", "bitcast", "mma.", "tf32"),
    *("load i32", "store i32"),
)


def _wide_line(line: str) -> str:
    if "@tw.lane()" in line:
        return "  %lane.narrow = call i32 @tw.lane()\n  %lane = zext i32 %lane.narrow to i64"
    if any(word in line for word in _AS_THEY_ARE):
        return line
    line = re.sub(r"trunc i64 (\S+) to i32", r"add i64 \1, 0", line)
    return re.sub(r"\bi32\b", "i64", line)


class _Warp:
    """What the threads of one warp, or of several, give and get."""

    def __init__(self, size: int = LANES) -> None:
        self.given: list[object] = [None] * size
        self.result: np.ndarray = np.zeros(0)
        self.kind = ""
        self.barrier = threading.Barrier(size, action=self.compute)

    def meet(self, lane: int, kind: str, given: object) -> np.ndarray:
        """Wait for the others; what comes of what all have given."""
        self.given[lane], self.kind = given, kind
        self.barrier.wait(timeout=60)
        return self.result

    def compute(self) -> None:
        """Called by the last thread that comes."""
        self.result = COMPUTE[self.kind.partition(".")[0]](self.kind, self.given)


_group: dict[int, _Warp] = defaultdict(lambda: _Warp(4 * LANES))
_warps: dict[int, _Warp] = defaultdict(_Warp)
_open: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
_groups: dict[int, deque[list[tuple[int, int, int]]]] = defaultdict(deque)
_lock = threading.Lock()


def _warp(thread: int) -> _Warp:
    with _lock:
        return _warps[thread // LANES]


def _on_ldmatrix(kind: str, thread: int, start: int, out: int) -> None:
    result = _warp(thread).meet(thread % LANES, kind, start)[thread % LANES]
    ctypes.memmove(out, result.ctypes.data, 16)


def _on_mma(kind: str, thread: int, start: int, out: int) -> None:
    operands, own = SHORT.get(kind.removeprefix("mma."), (6, 4))
    words = operands + own
    given = np.frombuffer((ctypes.c_uint32 * words).from_address(start), np.uint32).copy()
    result = np.ascontiguousarray(_warp(thread).meet(thread % LANES, kind, given)[thread % LANES])
    assert result.nbytes == 4 * own
    ctypes.memmove(out, result.ctypes.data, result.nbytes)


def _on_wgmma(kind: str, thread: int, start: int, out: int) -> None:
    count = int(kind.split(".")[1]) // 2
    words = count + 1 + (0 if kind.startswith("settle") else len(OPERANDS[kind[-1]]))
    given = np.frombuffer((ctypes.c_uint64 * words).from_address(start), np.uint64).copy()
    given[:count] &= 0xFFFFFFFF
    with _lock:
        group = _group[thread // (4 * LANES)]
    member = thread % (4 * LANES)
    result = np.ascontiguousarray(group.meet(member, kind, given)[member])
    assert result.nbytes == count * 4
    ctypes.memmove(out, result.ctypes.data, count * 4)


def _on_copy(size: int, thread: int, to: int, origin: int) -> None:
    assert to % size == origin % size == 0
    _open[thread].append((to, origin, size))


def _on_commit(thread: int, *_: int) -> None:
    _groups[thread].append(_open.pop(thread, []))


def _on_await(thread: int, groups: int | None, _: int) -> None:
    while len(_groups[thread]) > (groups or 0):
        for to, origin, size in _groups[thread].popleft():
            ctypes.memmove(to, origin, size)


_FUNCTIONS = {
    "tw.py.ldmatrix": lambda *a: _on_ldmatrix("ldmatrix", *a),
    "tw.py.ldmatrix.trans": lambda *a: _on_ldmatrix("ldmatrix.trans", *a),
    **{
        f"tw.py.mma.{word}": partial(_on_mma, f"mma.{word}")
        for word in ("bf16", "f16", "tf32", *_SIGNS, *SHORT)
    },
    "tw.py.copy": partial(_on_copy, 16),
    "tw.py.copy.word": partial(_on_copy, 4),
    "tw.py.copy.half": partial(_on_copy, 8),
    "tw.py.commit": _on_commit,
    "tw.py.await": _on_await,
}
_N = (32, 64, 96, 128, 192, 256)
_KINDS = product(_N, ("bf16", "f16", "tf32"), "01", ("0", "1", "2", _MANY), "nr")
_ACROSS = product(_N, ("tf32",), "0", "02", "x")
_INTEGERS = product(_N, _SIGNS, "0", ("0", "1", _MANY), "n")
for _kind in (
    *(f"wgmma.{'.'.join(map(str, words))}" for words in (*_KINDS, *_ACROSS, *_INTEGERS)),
    *(f"settle.{n}.{left}" for n in _N for left in range(3)),
):
    _FUNCTIONS[f"tw.py.{_kind}"] = partial(_on_wgmma, _kind)
_KEPT = {name: _POINTERS(function) for name, function in _FUNCTIONS.items()}
for _name, _function in _KEPT.items():
    llvm.add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)


def forget_copies() -> None:
    """Before a launch: copies that nobody waited for never arrive."""
    assert not any(under_way.values()), "products that nobody waited for"
    _open.clear()
    _groups.clear()
