"""Loop functions as text: `print_func` and `parse_func`, inverse to each other.

    func @mm(A: f32[M, 64], B: f32[8, 64, 12], out C: f32[M, 96])
      layout B = pack [64, 96] -> [d1 // 12, d0, d1 % 12]
    {
      alloc T: f32[8, 12] @register                   # until the end of the enclosing braces
      for i in parallel(M // 8) {versioned=1} {
        for j, k in serial(8, 64) {                   # short for two loops, one in the other
          block "C" [vi: S(M) = i * 8 + j, vk: R(64) = k] reads A[vi, vk : 4] writes T[vi, 0 : 12]
            where i * 8 + j < M
            init { T[vi, 0] = 0.0 }
            { T[vi, 0] += A[vi, vk] * 2.0 }           # `x += e` is `x = x + e`
        }
        if i < 4 { C[i, 0 ? i < M] = 1.0 } else { C[i, 1] = 2.0 }
        tile mma C[0 : 8, 0 : 12] <- A[0 : 8, 0 : 4], B[0, 0 : 4, 0 : 12] using "amx_bf16"
      }
    }

Bare braces end the scope of an `alloc` early; `seq { ... }` is a sequence inside a sequence.

Blocks of threads of a GPU also have

    let tile = b + i * 132                            # until the end of the enclosing braces
    roles {                                           # warps of a block, each with a role
      consumer warps(8) registers(232) { ... }
      producer warps(4) registers(24) { ... }
    }
    barrier                                           # the threads of a block wait for each other
    cp_async_commit                                   # copies that a thread has started
    cp_async_wait 2
    mbarrier_init full[0 : 4] count 2                 # mbarriers in shared memory
    mbarrier_arrive empty[k % 4] ? 0 < k
    mbarrier_wait full[k % 4] parity k // 4 % 2
    signal arrived[0]                                 # flags in global memory
    await arrived[0] count t * 128
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tilewright.arith.expr import TRUE, Binary, Expr, as_int
from tilewright.arith.text import print_expr
from tilewright.core.dtypes import DTYPES
from tilewright.ir.excerpt import excerpt
from tilewright.ir.loop.nodes import (
    Alloc,
    Annotations,
    Await,
    Barrier,
    Block,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    Iter,
    Layout,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.parse import parse_func

__all__ = ["parse_func", "print_func", "print_lines", "print_stmt", "stmt_excerpt"]

WIDTH = 100

# A line of text and the statement it belongs to.
Line = tuple[str, Stmt | None]


def print_func(func: Func) -> str:
    """The text of a function."""
    return "\n".join(line for line, _ in print_lines(func)) + "\n"


def print_stmt(stmt: Stmt) -> str:
    """The text of a statement."""
    return "\n".join(line for line, _ in _items(stmt))


def print_lines(func: Func) -> list[Line]:
    """The text line by line, each with the statement that it belongs to."""
    params = [("out " if b.name in func.outputs else "") + str(b) for b in func.params]
    head, notes = f"func @{func.name}(", print_annotations(func.annotations)
    header = [f"{head}{', '.join(params)}){notes}"]
    if len(header[0]) + 2 > WIDTH:
        header = [head, *(f"  {p}," for p in params), f"){notes}"]
    layouts = [f"  layout {name} = {print_layout(layout)}" for name, layout in func.layouts]
    lines = [*header, *layouts, "{"] if layouts else [*header[:-1], header[-1] + " {"]
    return [*((line, None) for line in lines), *_indent(_items(func.body)), ("}", None)]


def stmt_excerpt(func: Func, stmt: Stmt | None, focus: str = "") -> tuple[str, ...]:
    """The line of `stmt` (the very object) with marks under `focus`, for an error message.

    `None` stands for the function's head.
    """
    lines = print_lines(func)
    own = [n for n, (_, owner) in enumerate(lines) if owner is stmt] or [0]
    return excerpt([text for text, _ in lines], own, focus)


def print_annotations(annotations: Annotations) -> str:
    """` {name=value, ...}`, nothing for none."""
    pairs = (f"{k}={json.dumps(v) if isinstance(v, str) else int(v)}" for k, v in annotations)
    return f" {{{', '.join(pairs)}}}" if annotations else ""


def print_layout(layout: Layout) -> str:
    """`pack [96, 64] -> [d0 // 12, d1, d0 % 12]`: which part of the logical index each takes."""
    parts = (
        f"d{axis}" if (block, place) == (0, 0) else f"d{axis} {'%' if place else '//'} {block}"
        for axis, block, place in layout.parts
    )
    return f"pack [{', '.join(map(print_expr, layout.logical))}] -> [{', '.join(parts)}]"


def print_region(region: Region) -> str:
    """`A[i, j : 4]`; an extent of 1 is left out."""
    return f"{region.buffer}[{', '.join(_range(*pair) for pair in region.ranges)}]"


def _range(start: Expr, extent: Expr) -> str:
    if as_int(extent) == 1:
        return print_expr(start)
    text = print_expr(extent)
    # After a colon a word that is a dtype would read as the dtype of what stands before.
    first = re.split(r"[^\w.]", text, maxsplit=1)[0]
    return f"{print_expr(start)} : {f'({text})' if first in DTYPES else text}"


def _indent(lines: list[Line]) -> list[Line]:
    return [("  " + line, stmt) for line, stmt in lines]


def _items(stmt: Stmt) -> list[Line]:
    """What stands between the braces around `stmt`."""
    return _listed(stmt.stmts if isinstance(stmt, Seq) and len(stmt.stmts) != 1 else (stmt,))


def _listed(stmts: tuple[Stmt, ...]) -> list[Line]:
    lines: list[Line] = []
    for n, s in enumerate(stmts):
        if not isinstance(s, Alloc | Let):
            lines += _PRINT[type(s)](s)
        elif n == len(stmts) - 1:
            lines += [(_declaration(s), s), *_items(s.body)]
        else:  # braces end its scope before the next statement
            lines += _braced("", s, s)
    return lines


def _declaration(s: Alloc | Let) -> str:
    if isinstance(s, Let):
        return f"let {s.name} = {print_expr(s.value)}"
    return f"alloc {s.buffer}"


def _braced(head: str, body: Stmt, owner: Stmt) -> list[Line]:
    opening = f"{head} {{" if head else "{"
    return [(opening, owner), *_indent(_items(body)), ("}", owner)]


def _print_seq(s: Seq) -> list[Line]:
    return [("seq {", s), *_indent(_listed(s.stmts)), ("}", s)]


def _print_for(s: For) -> list[Line]:
    notes = print_annotations(s.annotations)
    return _braced(f"for {s.name} in {s.kind}({print_expr(s.extent)}){notes}", s.body, s)


def _print_if(s: If) -> list[Line]:
    lines = _braced(f"if {print_expr(s.cond)}", s.then, s)
    if s.orelse is not None:
        lines[-1:] = _braced("} else", s.orelse, s)
    return lines


def _print_store(s: Store) -> list[Line]:
    mask = "" if s.mask is None else f" ? {print_expr(s.mask)}"
    target = f"{s.buffer}[{', '.join(map(print_expr, s.indices))}{mask}]"
    value = s.value
    if isinstance(value, Binary) and value.op == "add" and not mask and value.a is s.target:
        return [(f"{target} += {print_expr(value.b)}", s)]
    return [(f"{target} = {print_expr(value)}", s)]


def _print_iter(it: Iter) -> str:
    return f"{it.name}: {it.kind}({print_expr(it.extent)}) = {print_expr(it.binding)}"


def _print_block(s: Block) -> list[Line]:
    head = f"block {json.dumps(s.name)} [{', '.join(map(_print_iter, s.iters))}]"
    for word, regions in (("reads", s.reads), ("writes", s.writes)):
        head += f" {word} {', '.join(map(print_region, regions))}" if regions else ""
    lines: list[Line] = [(head + print_annotations(s.annotations), s)]
    if s.predicate is not TRUE:
        lines.append((f"  where {print_expr(s.predicate)}", s))
    if s.init is not None:
        lines += _indent(_short("init", s.init, s))
    return lines + _indent(_short("", s.body, s))


def _short(head: str, body: Stmt, owner: Stmt) -> list[Line]:
    """Braces on one line around a single store, else over several lines."""
    if not isinstance(body, Store):
        return _braced(head, body, owner)
    text, _ = _print_store(body)[0]
    return [(f"{head} {{ {text} }}".lstrip(), body)]


def _print_tile(s: Tile) -> list[Line]:
    srcs = f" <- {', '.join(map(print_region, s.srcs))}" if s.srcs else ""
    using = f" using {json.dumps(s.intrinsic)}" if s.intrinsic else ""
    return [(f"tile {s.op} {print_region(s.dst)}{srcs}{using}", s)]


def _print_roles(s: Roles) -> list[Line]:
    lines: list[Line] = []
    for role in s.roles:
        registers = f" registers({role.registers})" if role.registers else ""
        lines += _braced(f"{role.name} warps({role.warps}){registers}", role.body, s)
    return [("roles {", s), *_indent(lines), ("}", s)]


def _print_mbarrier_arrive(s: MbarrierArrive) -> list[Line]:
    mask = "" if s.mask is None else f" ? {print_expr(s.mask)}"
    return [(f"mbarrier_arrive {print_region(s.barrier)}{mask}", s)]


_PRINT: dict[type, Callable[..., list[Line]]] = {
    Seq: _print_seq,
    For: _print_for,
    If: _print_if,
    Store: _print_store,
    Block: _print_block,
    Tile: _print_tile,
    Roles: _print_roles,
    MbarrierInit: lambda s: [(f"mbarrier_init {print_region(s.barrier)} count {s.count}", s)],
    MbarrierArrive: _print_mbarrier_arrive,
    MbarrierWait: lambda s: [
        (f"mbarrier_wait {print_region(s.barrier)} parity {print_expr(s.parity)}", s)
    ],
    Signal: lambda s: [(f"signal {print_region(s.flag)}", s)],
    Await: lambda s: [(f"await {print_region(s.flag)} count {print_expr(s.count)}", s)],
    Barrier: lambda s: [("barrier", s)],
    CpAsyncCommit: lambda s: [("cp_async_commit", s)],
    CpAsyncWait: lambda s: [(f"cp_async_wait {s.pending}", s)],
}
