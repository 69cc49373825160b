"""Instructions that the threads of a warp do together, on this machine: by functions in Python.

Each thread leaves what it gives in a slot of its warp; the last one that comes computes for all. A
copy that was started arrives as late as it may: when its thread waits for its group. Operands of a
product that is under way must be the same when it is waited for.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import defaultdict, deque
from functools import partial
from itertools import product

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np

from tests.codegen import host_bulk
from tests.codegen.host_bulk import bulk_text

LANES = 32
# Functions that a thread calls with its number, then pointers or numbers.
_POINTERS = ctypes.CFUNCTYPE(None, ctypes.c_int64, *(ctypes.c_void_p,) * 2)

_TEXT = """
declare void @tw.py.ldmatrix(i64, ptr, ptr)
declare void @tw.py.ldmatrix.trans(i64, ptr, ptr)
declare void @tw.py.mma.bf16(i64, ptr, ptr)
declare void @tw.py.mma.f16(i64, ptr, ptr)
declare void @tw.py.mma.tf32(i64, ptr, ptr)
declare void @tw.py.copy(i64, ptr, ptr)
declare void @tw.py.copy.word(i64, ptr, ptr)
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
_FOUR, _SUMS = "{ i32, i32, i32, i32 }", "{ float, float, float, float }"


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


def _mma(word: str, kind: str) -> str:
    params = ", ".join([*(f"{kind} %x{n}" for n in range(6)), *(f"float %c{n}" for n in range(4))])
    stores = []
    for n, (given, type_) in enumerate(
        [(f"%x{n}", kind) for n in range(6)] + [(f"%c{n}", "float") for n in range(4)]
    ):
        stores.append(f"  %s{n} = getelementptr i32, ptr %in, i64 {n}")
        stores.append(f"  store {type_} {given}, ptr %s{n}")
    body = "\n".join(stores)
    return f"""
define internal {_SUMS} @tw.mma.{word}({params}) noinline {{
  %in = alloca [10 x i32]
  %out = alloca {_SUMS}
{body}
  %n = call i64 @tw.number()
  call void @tw.py.mma.{word}(i64 %n, ptr %in, ptr %out)
  %r = load {_SUMS}, ptr %out
  ret {_SUMS} %r
}}
"""


_NAMES = {
    "llvm.nvvm.read.ptx.sreg.laneid": "tw.lane",
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3": "tw.ldmatrix",
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": "tw.ldmatrix.trans",
    "llvm.nvvm.mma.m16n8k16.row.col.bf16": "tw.mma.bf16",
    "llvm.nvvm.mma.m16n8k16.row.col.f32.f32": "tw.mma.f16",
    "llvm.nvvm.mma.m16n8k8.row.col.tf32": "tw.mma.tf32",
    "llvm.nvvm.f2tf32.rna": "tw.tf32",
    "llvm.nvvm.cp.async.cg.shared.global.16": "tw.copy",
    "llvm.nvvm.cp.async.ca.shared.global.4": "tw.copy.word",
    "llvm.nvvm.cp.async.commit.group": "tw.commit",
    "llvm.nvvm.cp.async.wait.group": "tw.await",
}
SHARED_BYTES = 256 * 1024


def warp_text(text: str) -> str:
    """A module with those instructions as one that calls the functions here."""
    text = bulk_text(text)
    for name, own in {**_NAMES, **host_bulk.NAMES}.items():
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
    return re.sub(r" addrspace\([137]\)", "", text) + _TEXT + host_bulk.TEXT + made + groups


_GROUPED = re.compile(
    r"call (\{[^}]*\}) asm sideeffect \"[^\"]*m64n(\d+)k\d+\.f32\.(\w+)\.[^\"]*"
    r"p, 1, 1(?:, (0, )?(\d))?;[^\"]*commit_group\.sync\.aligned;"
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
        kind, columns, dtype, both, turned, left = found.groups()
        held = "x" if "ld.shared" in found[0] else "n" if both or turned is None else "r"
        turned = turned or "0"
        first = "q, 1, 1" in found[0]
        name = f"tw.wgmma.{columns}.{dtype}.{turned}.{left or _MANY}.{held}"
        assert shared is not None
        called.add(name)
        made[name + "f" * first] = _wgmma(name, kind, _OPERANDS[held], shared[1], first)
        return f"call {kind} @{name}{'.first' * first}"

    def settle(found: re.Match[str]) -> str:
        kind = found[1]
        name = f"tw.settle.{2 * kind.count('float')}.{found[2]}"
        assert shared is not None
        called.add(name)
        made[name] = _wgmma(name, kind, [], shared[1])
        return f"call {kind} @{name}"

    text = _SETTLED.sub(settle, _GROUPED.sub(call, _NOTHING.sub("", text)))
    names = (name.replace("tw.", "tw.py.") for name in sorted(called))
    declared = (f"declare void @{name}(i64, ptr, ptr)\n" for name in names)
    return text, "".join([*declared, *made.values()])


# What describes both operands of the four steps; a left one in registers is there itself, for one
# that threads read there are the addresses of four words, and which two of them come first.
_OPERANDS = {
    "n": ["i64", "i64"] * 4,
    "r": ["i32", "i32", "i32", "i32", "i64"] * 4,
    "x": ["i32"] * 5 + ["i64"] * 4,
}


def _wgmma(name: str, kind: str, operands: list[str], shared: str, first: bool = False) -> str:
    """Sums and operands in a row, the address of the shared memory behind them.

    Sums that start with it are zero.
    """
    sums, words = kind.count("float"), kind.count("float") + len(operands)
    given = [] if first else [f"float %c{n}" for n in range(sums)]
    given += [f"{word} %d{n}" for n, word in enumerate(operands)]
    stores = []
    zeros = ["float 0.0"] * sums if first else []
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


def _wide_line(line: str) -> str:
    if "@tw.lane()" in line:
        return "  %lane.narrow = call i32 @tw.lane()\n  %lane = zext i32 %lane.narrow to i64"
    if any(word in line for word in ("ldmatrix", "extractvalue", "bitcast", "mma.", "tf32")):
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
        self.result = _COMPUTE[self.kind.partition(".")[0]](self.kind, self.given)


def _read_matrices(kind: str, given: list[int]) -> np.ndarray:
    """For each lane, the pairs that it gets of four matrices whose rows begin at 32 addresses."""
    rows = [(ctypes.c_uint16 * 8).from_address(place) for place in given]
    four = np.array(rows, np.uint16).reshape(4, 8, 8)
    four = four.transpose(0, 2, 1) if kind.endswith("trans") else four
    return four.reshape(4, LANES, 2).transpose(1, 0, 2).copy()


def _multiply(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each lane, its four elements of a product; fragments as the instruction has them."""
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32}[kind[4:]]
    words = np.array(given, np.uint32)
    each = 4 // np.dtype(dtype).itemsize
    parts = words[:, :6].copy().view(np.uint8).view(dtype).astype(np.float32)
    parts = parts.reshape(8, 4, 6, each)  # group, place in it, register, part
    near = 4 * each
    a = np.zeros((16, 2 * near), np.float32)
    b = np.zeros((2 * near, 8), np.float32)
    sums = words[:, 6:].copy().view(np.float32).reshape(8, 4, 4)
    for register in range(4):
        rows, columns = register % 2 * 8, register // 2 * near
        a[rows : rows + 8, columns : columns + near] = parts[:, :, register].reshape(8, near)
    for register in range(2):
        b[register * near :][:near] = parts[:, :, 4 + register].reshape(8, near).T
    product = a @ b
    out = np.empty((8, 4, 4), np.float32)
    for register in range(4):
        part = product[register // 2 * 8 : register // 2 * 8 + 8, register % 2 :: 2]
        out[:, :, register] = sums[:, :, register] + part
    return out.reshape(LANES, 4)


def _multiply_group(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each of 128 threads, its elements of a product of operands that descriptors tell of."""
    _, columns, name, turned, left, held = kind.split(".")
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32}[name]
    count = int(columns) // 2
    words = np.array(given, np.uint64)
    described = [count + n for n, word in enumerate(_OPERANDS[held]) if word == "i64"]
    each = len(described) // 4
    assert (words[:, described] == words[0, described]).all(), "threads must agree"
    base = int(words[0, -1])
    assert base % 1024 == 0
    memory = np.frombuffer((ctypes.c_uint16 * (SHARED_BYTES // 2)).from_address(base), np.uint16)
    total = np.zeros((64, int(columns)), np.float32)
    for step in range(4):
        *lefts, right = (int(words[0, place]) for place in described[each * step :][:each])
        places = [_places(base, right, int(columns), turned == "1")]
        places += [_places(base, bits, 64, False) for bits in lefts]
        y, *x = (memory[place].view(dtype).astype(np.float32) for place in places)
        given_rows = words[:, count + 5 * step :] if held == "r" else words[:, count:]
        rows = x[0] if x else _LEFT[held](given_rows, memory, base, step, dtype)
        total += rows @ y.T
        _under_way[id(given)].append([(memory, place, memory[place]) for place in places])
    _settle(_under_way[id(given)], int(left) if held == "x" else 4 * int(left))
    own = total.reshape(4, 2, 8, int(columns) // 8, 4, 2)  # warp, half, row, block, place, pair
    own = own.transpose(0, 2, 4, 3, 1, 5).reshape(4 * LANES, count)
    return own + words[:, :count].astype(np.uint32).view(np.float32)


_Read = tuple[np.ndarray, np.ndarray, np.ndarray]


def _settle(under_way: deque[list[_Read]], left: int) -> None:
    """Let all but some products end: what they read is what it was when they began."""
    while len(under_way) > left:
        for memory, place, before in under_way.popleft():
            assert (memory[place] == before).all(), "written before it was read"


def _settle_group(kind: str, given: list[np.ndarray]) -> np.ndarray:
    """For each of 128 threads, its sums as they are."""
    _settle(_under_way[id(given)], 4 * int(kind.split(".")[2]))
    return np.array(given, np.uint64)[:, :-1].astype(np.uint32).view(np.float32)


def _rows(words: np.ndarray, memory: np.ndarray, base: int, step: int, dtype: type) -> np.ndarray:
    """The 64 rows of 16 that four warps have in their registers."""
    halves = words[:, :4].astype(np.uint32).view(np.uint16).reshape(4, 8, 4, 4, 2)
    found = np.empty((4, 2, 8, 2, 4, 2), np.uint16)  # warp, half, row, column block, place, pair
    for part in range(4):
        found[:, part % 2, :, part // 2] = halves[:, :, :, part]
    return found.reshape(64, 16).view(dtype).astype(np.float32)


def _read_rows(
    words: np.ndarray, memory: np.ndarray, base: int, step: int, dtype: type
) -> np.ndarray:
    """The 64 rows of 8 that threads read of an operand that lies across."""
    starts = (words[:, :4].astype(np.uint32) - np.uint32(base & 0xFFFFFFFF)).astype(np.int64)
    read = memory.view(np.uint32)[(starts + step * 1024) // 4].view(np.float32)
    upper = words[:, 4].astype(np.uint32).astype(bool)
    read[upper] = read[upper][:, [2, 3, 0, 1]]
    own = read.reshape(4, 8, 4, 2, 2)  # warp, row, place, second depth, lower half
    return own.transpose(0, 4, 1, 3, 2).reshape(64, 8)


_LEFT = {"r": _rows, "x": _read_rows}


def _places(base: int, bits: int, side: int, turned: bool) -> np.ndarray:
    """Where the rows, or columns, of an operand lie, 16 elements each: of 128 bytes, swizzled."""
    assert bits >> 62 == 1, "swizzled by 128 bytes"
    start = ((bits & 0x3FFF) * 16 - base) % (1 << 18)
    leading, apart = (bits >> 16 & 0x3FFF) * 16, (bits >> 32 & 0x3FFF) * 16
    i, k = np.meshgrid(np.arange(side), np.arange(16), indexing="ij")
    if turned:
        place = start + i // 64 * leading + i % 64 * 2 + k // 8 * apart + k % 8 * 128
    else:
        place = start + i // 8 * apart + i % 8 * 128 + k * 2
    return (place ^ (place >> 7 & 7) << 4) // 2


_COMPUTE = {
    "ldmatrix": _read_matrices,
    "mma": _multiply,
    "wgmma": _multiply_group,
    "settle": _settle_group,
}
_under_way: dict[int, deque[list[_Read]]] = defaultdict(deque)
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
    given = np.frombuffer((ctypes.c_uint32 * 10).from_address(start), np.uint32).copy()
    result = np.ascontiguousarray(_warp(thread).meet(thread % LANES, kind, given)[thread % LANES])
    ctypes.memmove(out, result.ctypes.data, 16)


def _on_wgmma(kind: str, thread: int, start: int, out: int) -> None:
    count = int(kind.split(".")[1]) // 2
    words = count + 1 + (0 if kind.startswith("settle") else len(_OPERANDS[kind[-1]]))
    given = np.frombuffer((ctypes.c_uint64 * words).from_address(start), np.uint64).copy()
    given[:count] &= 0xFFFFFFFF
    with _lock:
        group = _group[thread // (4 * LANES)]
    member = thread % (4 * LANES)
    result = np.ascontiguousarray(group.meet(member, kind, given)[member], np.float32)
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
    "tw.py.mma.bf16": lambda *a: _on_mma("mma.bf16", *a),
    "tw.py.mma.f16": lambda *a: _on_mma("mma.f16", *a),
    "tw.py.mma.tf32": lambda *a: _on_mma("mma.tf32", *a),
    "tw.py.copy": partial(_on_copy, 16),
    "tw.py.copy.word": partial(_on_copy, 4),
    "tw.py.commit": _on_commit,
    "tw.py.await": _on_await,
}
_KINDS = product((64, 128, 192, 256), ("bf16", "f16", "tf32"), "01", ("0", "1", "2", _MANY), "nr")
_ACROSS = product((64, 128, 192, 256), ("tf32",), "0", "02", "x")
for _kind in (
    *(f"wgmma.{'.'.join(map(str, words))}" for words in (*_KINDS, *_ACROSS)),
    *(f"settle.{n}.{left}" for n in (64, 128, 192, 256) for left in range(3)),
):
    _FUNCTIONS[f"tw.py.{_kind}"] = partial(_on_wgmma, _kind)
_KEPT = {name: _POINTERS(function) for name, function in _FUNCTIONS.items()}
for _name, _function in _KEPT.items():
    llvm.add_symbol(_name, ctypes.cast(_function, ctypes.c_void_p).value)


def forget_copies() -> None:
    """Before a launch: copies that nobody waited for never arrive."""
    assert not any(_under_way.values()), "products that nobody waited for"
    _open.clear()
    _groups.clear()
