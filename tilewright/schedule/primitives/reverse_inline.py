"""`reverse_inline(block)`: merge an elementwise consumer into its producer.

    for i in serial(M) {                                     for i in serial(M) {
      block "T" [v: S(M) = i] ... { T[v] = A[v] * 2.0 }        block "T" [v: S(M) = i] ...
    }                                                     →      { C[v] = max(A[v] * 2.0, 0.0) }
    for j in serial(M) {                                     }
      block "C" [w: S(M) = j] ... { C[w] = max(T[w], 0.0) }
    }

The merged block keeps the producer's name and loops; the producer's buffer disappears.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Load, Var, as_int, const
from tilewright.arith.simplify import prove
from tilewright.arith.walk import loads, rewrite, substitute
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Func, Store
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.dataflow import (
    allocation,
    check_order,
    only_buffer,
    read,
    readers,
    writers,
    written,
)
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.primitives.inline import single_store
from tilewright.schedule.rewrite_accesses import simplify_loads
from tilewright.schedule.tree import block_spine, leaves, replaced, target_block


def reverse_inline(func: Func, block: str) -> Func:
    """Merge an elementwise block into the producer of the allocation that it reads."""
    consumer = target_block(block_spine(func, block))
    store = single_store(func, consumer, "reverse-inline")
    only_buffer(func, consumer, "reverse-inline")
    buffer, indices = _source(func, consumer, store)
    producer = target_block(writers(func, buffer)[0])
    start = single_store(func, producer, "reverse-inline")
    _check_between(func, producer, consumer)
    values: dict[str, Expr] = {
        it.name: start.indices[indices.index(v)] if (v := Var(it.name)) in indices else const(0)
        for it in consumer.iters
    }
    merged = _merged(producer, start, store, buffer, values, func)
    after = replaced(func, block_spine(func, producer.name), merged)
    after = replaced(after, block_spine(after, block), None)
    alloc = allocation(after, buffer, "reverse-inline")
    assert isinstance(alloc[-1], Alloc)
    after = replaced(after, alloc, alloc[-1].body)
    check_order(func, after, "reverse-inline")
    return after


def _merged(
    producer: Block,
    start: Store,
    store: Store,
    buffer: str,
    values: dict[str, Expr],
    func: Func,
) -> Block:
    def element(e: Expr) -> Expr | None:
        return start.value if isinstance(e, Load) and e.buffer == buffer else None

    extents = {it.name: it.extent for it in producer.iters}
    value = simplify_loads(rewrite(substitute(store.value, values), element), extents)
    indices = tuple(substitute(i, values) for i in store.indices)
    return make_block(
        producer.name,
        producer.iters,
        Store(store.buffer, indices, value),
        None,
        producer.predicate,
        annotations=producer.annotations,
        buffers=buffers(func),
    )


def _source(func: Func, block: Block, store: Store) -> tuple[str, tuple[Expr, ...]]:
    """The allocation that the block reads once, indexed by its own iterators."""
    known = buffers(func)
    parameters = {b.name for b in func.params}
    for load in loads(store.value):
        if load.buffer in parameters or load.mask is not None:
            continue
        alone = len(readers(func, load.buffer)) == 1 and len(writers(func, load.buffer)) == 1
        once = sum(x.buffer == load.buffer for x in loads(store.value)) == 1
        if alone and once and _is_identity(block, load, known[load.buffer].shape):
            return load.buffer, load.indices
    message = f'block "{block.name}" reads no allocation element by element, or not alone'
    raise refuse(func, "reverse-inline.source", message, block)


def _is_identity(block: Block, load: Load, shape: tuple[Expr, ...]) -> bool:
    """Whether each element is read by its own instance; dimensions of size 1 do not count."""
    left = {it.name: it.extent for it in block.iters}
    for index, dim in zip(load.indices, shape, strict=True):
        if isinstance(index, Var) and index.name in left:
            if not prove(left.pop(index.name).eq(dim)):
                return False
        elif as_int(index) != 0 or as_int(dim) != 1:
            return False
    return all(as_int(extent) == 1 for extent in left.values())


def _check_between(func: Func, producer: Block, consumer: Block) -> None:
    """No statement between the two may access what the consumer writes."""
    inside = False
    for leaf in leaves(func.body):
        if leaf is consumer:
            return
        if inside and (read(leaf) | written(leaf)) & written(consumer):
            message = (
                f'something between "{producer.name}" and "{consumer.name}" touches its result'
            )
            raise refuse(func, "reverse-inline.between", message, leaf)
        inside = inside or leaf is producer
