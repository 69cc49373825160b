"""The work of a kernel before scheduling: the operations of its group, the bytes that it moves.

A parameter is counted once for every element that is touched: all of them, or as many as there are
accesses where that is fewer, as in a gather of some rows of a table.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Load, as_int, const, minimum, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Block, Buffer, Func, Store
from tilewright.ir.loop.walk import blocks, own_expressions
from tilewright.ops.registry import get_op


def group_flops(group: Graph) -> Expr:
    """The arithmetic operations of all operators in a group."""
    total: Expr = const(0)
    for n in group.nodes:
        ins = [group.types[i] if i else None for i in n.inputs]
        total = total + get_op(n.op).cost(n.attrs, ins, n.types)
    return simplify(total)


def param_bytes(func: Func) -> tuple[Expr, ...]:
    """For each parameter, the bytes read or written of it."""
    every = list(blocks(func.body))
    return tuple(_bytes(p, func, every) for p in func.params)


def _bytes(param: Buffer, func: Func, every: list[Block]) -> Expr:
    touched = elements = product(param.shape)
    if param.name not in func.outputs:
        readers = [b for b in every if any(r.buffer == param.name for r in b.reads)]
        if readers and all(isinstance(b.body, Store) for b in readers):
            touched = _smaller(elements, [(b, _loads(b, param.name)) for b in readers])
    return simplify(touched * param.dtype.bytes)


def _loads(block: Block, buffer: str) -> set[Load]:
    """How a block whose body is one store reads a buffer."""
    return {x for e in own_expressions(block.body) for x in loads(e) if x.buffer == buffer}


def _smaller(elements: Expr, readers: list[tuple[Block, set[Load]]]) -> Expr:
    """The number of elements or of accesses; of symbolic ones only lookups may be fewer."""
    count: Expr = const(0)
    for block, found in readers:
        count = count + product(tuple(it.extent for it in block.iters)) * len(found)
    count = simplify(count)
    x, y = as_int(elements), as_int(count)
    if x is not None and y is not None:
        return elements if x <= y else count
    indices = [i for _, found in readers for load in found for i in load.indices]
    lookups = any(True for i in indices for _ in loads(i))
    return minimum(elements, count) if lookups else elements
