"""A thread that computes several elements loads for all of them before it stores one.

    for u in unroll(4) {                         alloc y.index: i64[4] @register
      y[u * 256 + t] = x[i[u * 8 + t]]           alloc y.value: f32[4] @register
    }                                    →       for u in unroll(4) { y.index[u] = i[u * 8 + t] }
                                                 for u in unroll(4) { y.value[u] = x[y.index[u]] }
                                                 for u in unroll(4) { y[u * 256 + t] = y.value[u] }

A store may change what later loads read, as far as an assembler knows: each load would wait for the
one before. Here parameters have other names than what is written, and one that shares its memory is
only read where the same iteration writes.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Expr, Load, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, rewrite
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import map_stmt, seq


def loads_first(func: Func) -> Func:
    """`func` with the loads of unrolled loops that move elements before their stores."""
    memory = frozenset(buffer.name for buffer in func.params)

    def outside(stmt: Stmt) -> Stmt:
        is_thread = isinstance(stmt, For) and stmt.kind == THREAD
        return map_stmt(stmt, inside if is_thread else outside)

    def inside(stmt: Stmt) -> Stmt:
        found = _in_phases(stmt, memory) if isinstance(stmt, For) else None
        return map_stmt(stmt, inside) if found is None else found

    return replace(func, body=outside(func.body))


def _in_phases(loop: For, memory: frozenset[str]) -> Stmt | None:
    """An unrolled loop over one store as loops over indices, values and stores."""
    inner = loop.body
    lane = inner if isinstance(inner, For) and inner.kind == "vectorize" else None
    store = inner if lane is None else lane.body
    count, lanes = as_int(loop.extent), 1 if lane is None else as_int(lane.extent)
    if loop.kind != "unroll" or not isinstance(store, Store) or not count or not lanes:
        return None
    read = {load.buffer for load in loads(store.value)}
    moves = bool(read) and read <= memory - {store.buffer} and store.buffer in memory
    if count == 1 or store.mask is not None or not moves:
        return None
    varies = frozenset() if lane is None else frozenset({lane.name})
    number = Var(loop.name)
    element = simplify(number * lanes + (const(0) if lane is None else Var(lane.name)))
    values = Buffer(f"{store.buffer}.value", store.value.dtype, (const(count * lanes),), "register")
    indices = {
        load: Buffer(f"{store.buffer}.index{n}", load.dtype, (const(count),), "register")
        for n, load in enumerate(_indices(store.value, varies))
    }
    value = rewrite(store.value, lambda e: _element(e, indices, number))
    phases = [
        *(replace(loop, body=Store(b.name, (number,), load)) for load, b in indices.items()),
        _each(loop, lane, Store(values.name, (element,), value)),
        _each(loop, lane, replace(store, value=Load(values.name, (element,), values.dtype))),
    ]
    result = seq(*phases)
    for buffer in (*indices.values(), values):
        result = Alloc(buffer, result)
    return result


def _indices(value: Expr, varies: frozenset[str]) -> list[Load]:
    """The loads on whose results others depend, the same for all elements of a vector."""
    return list(
        dict.fromkeys(
            load
            for outer in loads(value)
            for index in outer.indices
            for load in loads(index)
            if load.mask is None and not free_vars(load) & varies and not any(_inner(load))
        )
    )


def _inner(load: Load) -> list[Load]:
    return [x for index in load.indices for x in loads(index)]


def _element(e: Expr, indices: dict[Load, Buffer], number: Expr) -> Expr | None:
    buffer = indices.get(e) if isinstance(e, Load) else None
    return None if buffer is None else Load(buffer.name, (number,), buffer.dtype)


def _each(loop: For, lane: For | None, store: Store) -> For:
    return replace(loop, body=store if lane is None else replace(lane, body=store))
