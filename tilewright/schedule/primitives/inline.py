"""`inline(block)`: substitute an elementwise block into all its readers.

    alloc T: f32[M]                                          for j in serial(M) {
    for i in serial(M) {                                       block "C" [v: S(M) = j] ...
      block "T" [v: S(M) = i] ... { T[v] = A[v] * 2.0 }   →      { C[v] = max(A[v] * 2.0, 0.0) }
    }                                                        }
    for j in serial(M) {
      block "C" [v: S(M) = j] ... { C[v] = max(T[v], 0.0) }
    }

A reader that reads under a mask still sees zero where the mask is false.
"""

from __future__ import annotations

from tilewright.arith.expr import Binary, Expr, Load, Var, as_int, const, select
from tilewright.arith.operators import DIVISIONS
from tilewright.arith.walk import loads, rewrite, substitute
from tilewright.ir.loop.nodes import Alloc, Block, Func, Store, Tile
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.dataflow import allocation, only_buffer, readers
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import AccessRewriter, Extents, simplify_loads
from tilewright.schedule.tree import block_spine, replaced, target_block


def inline(func: Func, block: str) -> Func:
    """Substitute a block into all its readers and remove it with its buffer."""
    spine = block_spine(func, block)
    producer = target_block(spine)
    buffer = only_buffer(func, producer, "inline")
    allocation(func, buffer, "inline", producer)
    store = single_store(func, producer, "inline")
    formal = _formal_indices(func, producer, store)
    for reader in readers(func, buffer):
        if isinstance(reader[-1], Tile):
            raise refuse(func, "inline.tile", f"a tile reads {buffer!r}", reader[-1])
    inliner = _Inliner(producer, store, formal)
    smaller = AccessRewriter(buffer, buffers(func), inliner.load).func(replaced(func, spine, None))
    alloc = allocation(smaller, buffer, "inline")
    assert isinstance(alloc[-1], Alloc)
    return replaced(smaller, alloc, alloc[-1].body)


def single_store(func: Func, block: Block, step: str) -> Store:
    """The single store that a block consists of."""
    if block.init is not None or any(it.kind == "R" for it in block.iters):
        message = f'block "{block.name}" is a reduction, {step} needs one computed in one go'
        raise refuse(func, f"{step}.reduction", message, block)
    if not isinstance(block.body, Store) or block.body.mask is not None:
        message = f'block "{block.name}" is more than one plain store'
        raise refuse(func, f"{step}.body", message, block)
    if any(load.buffer == block.body.buffer for load in loads(block.body.value)):
        message = f'block "{block.name}" reads {block.body.buffer!r}, which it writes'
        raise refuse(func, f"{step}.in-place", message, block)
    return block.body


def _formal_indices(func: Func, block: Block, store: Store) -> dict[str, int]:
    """Which dimension each iterator indexes; iterators without one must have extent 1."""
    found: dict[str, int] = {}
    for dim, index in enumerate(store.indices):
        if isinstance(index, Var) and index.name not in found:
            found[index.name] = dim
        elif as_int(index) is None:
            message = f'block "{block.name}" does not write element by element: index {index}'
            raise refuse(func, "inline.index", message, block, focus=str(index))
    for it in block.iters:
        if it.name not in found and as_int(it.extent) != 1:
            message = f'iterator {it.name} of block "{block.name}" is no index of what it writes'
            raise refuse(func, "inline.index", message, block, focus=it.name)
    return found


class _Inliner:
    """Replaces loads of the buffer that a store writes by the stored value."""

    def __init__(self, block: Block, store: Store, formal: dict[str, int]) -> None:
        self.block = block
        self.value = store.value
        self.formal = formal

    def load(self, load: Load, extents: Extents) -> Expr:
        """The element that `load` would read, computed in place."""
        values: dict[str, Expr] = {
            it.name: load.indices[self.formal[it.name]] if it.name in self.formal else const(0)
            for it in self.block.iters
        }
        value = simplify_loads(substitute(self.value, values), extents)
        if load.mask is None:
            return value
        under = masked(value, load.mask)
        # A load is zero where its mask is false, as this one was.
        return under if isinstance(value, Load) else select(load.mask, under, const(0, load.dtype))


def masked(value: Expr, mask: Expr) -> Expr:
    """`value` with loads that read only where `mask` holds."""

    def restrict(e: Expr) -> Expr | None:
        if isinstance(e, Load):
            both = mask if e.mask is None else mask & e.mask
            return Load(e.buffer, e.indices, e.dtype, both)
        if isinstance(e, Binary) and e.op in DIVISIONS and e.dtype.is_integer and any(loads(e.b)):
            # an integer must not be divided by the zero that is read elsewhere
            return Binary(e.op, e.a, select(mask, e.b, const(1, e.dtype)))
        return None

    return rewrite(value, restrict)
