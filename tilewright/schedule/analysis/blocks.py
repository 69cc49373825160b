"""The structure of a function before it is scheduled: its blocks, their axes, their accesses.

Schedules are chosen from this structure alone, never from the name of an operator or a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.arith.affine import stride_of
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Binary, Cast, Expr, Load, Select, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, subexpressions, substitute
from tilewright.core.dtypes import DType
from tilewright.ir.loop.nodes import Block, Buffer, Func, Iter, Store
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.ir.types import TYPICAL_SIZE

# The op count of a block whose sizes are symbolic.
UNKNOWN_WORK = 1 << 40


@dataclass(frozen=True)
class BlockGraph:
    """A function's blocks in order, and its buffers by name."""

    blocks: tuple[Block, ...]
    buffers: dict[str, Buffer]
    outputs: tuple[str, ...]

    def block(self, name: str) -> Block:
        """The block called `name`."""
        return next(b for b in self.blocks if b.name == name)

    def consumers(self, buffer: str) -> tuple[Block, ...]:
        """The blocks that read a buffer."""
        return tuple(b for b in self.blocks if any(r.buffer == buffer for r in b.reads))


def block_graph(func: Func) -> BlockGraph:
    """The graph of a function."""
    return BlockGraph(tuple(blocks(func.body)), buffers(func), func.outputs)


def spatial(block: Block) -> tuple[Iter, ...]:
    """The iterators that number output elements."""
    return tuple(it for it in block.iters if it.kind == "S")


def reductions(block: Block) -> tuple[Iter, ...]:
    """The iterators that are reduced over."""
    return tuple(it for it in block.iters if it.kind == "R")


def is_simple(block: Block) -> bool:
    """Whether the body is one store, as everything lowered from tensor expressions is."""
    return isinstance(block.body, Store)


def loop_of(it: Iter) -> str:
    """The loop that an iterator is bound to, before any split."""
    assert isinstance(it.binding, Var), it
    return it.binding.name


def value_of(block: Block) -> Expr:
    """The expression that the block stores."""
    assert isinstance(block.body, Store)
    return block.body.value


def term_of(block: Block) -> Expr:
    """For a reduction, what is combined in each step; otherwise the value stored."""
    value = value_of(block)
    if block.init is not None and isinstance(value, Binary):
        return value.b
    return value


def accumulator_dtype(block: Block) -> DType:
    """The type in which a few terms may be accumulated: of widened products, their own type."""
    return _products(block).dtype


def allows_narrow_accumulation(block: Block) -> bool:
    """Whether a few products may be accumulated in a narrower type than the result has."""
    return accumulator_dtype(block) != value_of(block).dtype


def _products(block: Block) -> Expr:
    """What is summed; before it is widened, where that is done to products."""
    match term_of(block):
        case Cast(_, Binary("mul") as product):
            return product
    return value_of(block)


def is_copy(block: Block) -> bool:
    """Whether the block only moves elements: a plain load, perhaps rearranged."""
    return is_simple(block) and isinstance(value_of(block), Load) and value_of(block).mask is None  # type: ignore[attr-defined]


def flat_index(load: Load, buffer: Buffer) -> Expr:
    """The linear index of the element that is read, in row-major order."""
    flat: Expr = const(0)
    for size, index in zip(buffer.shape, load.indices, strict=True):
        flat = flat * size + index
    return flat


def flat_stride(load: Load, buffer: Buffer, axis: str) -> int | None:
    """The stride along `axis` in elements; `None` if it is not constant."""
    return stride_of(simplify(flat_index(load, buffer)), axis)


def index_position(load: Load, axis: str) -> int:
    """The dimension of a load whose index is the axis itself."""
    return next(n for n, i in enumerate(load.indices) if i is Var(axis))


def is_unit(load: Load, graph: BlockGraph, axis: str) -> bool:
    """Whether a load has stride 1 along an axis."""
    return flat_stride(load, graph.buffers[load.buffer], axis) == 1


def is_plain(load: Load, block: Block) -> bool:
    """Whether every index of a load is an axis of its own, and nothing is masked."""
    names = set(axis_names(block.iters))
    axes = [i.name for i in load.indices if isinstance(i, Var) and i.name in names]
    return len(set(axes)) == len(load.indices) and load.mask is None


def in_groups(e: Expr, axis: Iter, count: int) -> tuple[Expr, dict[str, Expr]]:
    """An index by groups of `count` neighbours of an axis, the place in its group last of both."""
    outer, inner = Var(f"{axis.name}.outer"), Var(f"{axis.name}.inner")
    extents = {outer.name: simplify(axis.extent // count), inner.name: const(count)}
    return simplify(substitute(e, {axis.name: outer * count + inner}), extents), extents


def typical_extent(extent: Expr) -> int:
    """The extent, with symbolic sizes taken to be typical; at least 1, whatever the formula."""
    return max(1, evaluate(extent, dict.fromkeys(free_vars(extent), TYPICAL_SIZE)))


def least_extent(extent: Expr) -> int:
    """The extent, with symbolic sizes taken to be 1."""
    return max(1, evaluate(extent, dict.fromkeys(free_vars(extent), 1)))


def op_count(block: Block) -> int:
    """How many operations the block executes; `UNKNOWN_WORK` where sizes are symbolic."""
    total = max(
        1, sum(isinstance(e, Binary | Select | Cast) for e in subexpressions(value_of(block)))
    )
    for it in block.iters:
        extent = as_int(it.extent)
        if extent is None:
            return UNKNOWN_WORK
        total *= extent
    return total


def reads_of(block: Block) -> tuple[Load, ...]:
    """The loads of a block, except of its accumulator."""
    written = {r.buffer for r in block.writes}
    return tuple(load for load in loads(term_of(block)) if load.buffer not in written)


def uses(load: Load, axis: str) -> bool:
    """Whether an index of the load depends on `axis`."""
    return any(axis in free_vars(i) for i in load.indices)


def axis_names(iters: Sequence[Iter]) -> tuple[str, ...]:
    """The names of iterators."""
    return tuple(it.name for it in iters)
