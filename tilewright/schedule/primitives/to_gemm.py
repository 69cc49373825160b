"""`to_gemm(block, m, n, k)`: a sum of products becomes a GEMM of two matrices.

    for n, w, o, r, c in serial(...) {              for b, k, i in serial(1, K, M) {
      block "y" { y[n, w, o] +=                       block "y.left" { y.left[b, k, i] = a[...] }
        x[n, w + r, c] * a[o, r, c] }               }
    }                                               for b, k, j in serial(1, K, N) {
    for n, w, o in serial(...) {                      block "y.right" { y.right[b, k, j] = x[...] }
      block "z" { z[n, w, o] =               →      }
        f(y[n, w, o]) }                             for b, i, j, k in serial(1, M, N, K) {
    }                                                 block "y" { y.sum[b, i, j] +=
                                                        y.left[b, k, i] * y.right[b, k, j] }
                                                    }
                                                    for b, i, j in serial(1, M, N) {
                                                      block "z" { z[...] = f(y.sum[b, i, j]) }
                                                    }

The axes of M are fused into one, as are those of N, of the batch and of K. M, N and K are rounded
up to multiples of `m`, `n` and `k`; K is padded with zeros, and rows and columns past the end,
which are never read, hold arbitrary elements. All GEMMs can then be tiled in the same way,
convolutions (implicit GEMM) too; see `schedule/analysis/gemm.py`. The single block that reads the
result gets the same rows and columns. `a` and `b` are the orders of the dimensions of the two
matrices. `swap_ab` builds the transposed GEMM: M and N, A and B are exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.arith.expr import (
    TRUE,
    Binary,
    Cast,
    Expr,
    Load,
    Var,
    ceildiv,
    const,
    product,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars, rewrite, substitute
from tilewright.core.node import node
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.walk import buffers, seq, substitute_stmt
from tilewright.schedule.analysis.dataflow import allocation, only_buffer, readers
from tilewright.schedule.analysis.gemm import GemmAxes, match_gemm, operand_load, transposed_gemm
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import simplify_loads
from tilewright.schedule.tree import block_spine, outermost, replaced, target_block


def to_gemm(
    func: Func,
    block: str,
    m: int,
    n: int,
    k: int,
    a: str = "km",
    b: str = "kn",
    swap_ab: int = 0,
) -> Func:
    """Bring a sum of products, and the block that reads it, into the form of a GEMM."""
    spine = block_spine(func, block)
    old = target_block(spine)
    gemm = match_gemm(old, gemv=True)
    if gemm is None:
        message = f'block "{block}" is not a sum of products of two loads'
        raise refuse(func, "to-gemm.block", message, old)
    gemm = transposed_gemm(gemm) if swap_ab else gemm
    buffer = only_buffer(func, old, "to-gemm")
    allocation(func, buffer, "to-gemm", old)
    made = _Product(func, old, gemm, buffer, (m, n, k), (a, b))
    reader = made.reader()
    after = replaced(func, outermost(spine), made.nests())
    after = replaced(after, outermost(block_spine(after, reader.name)), made.read(reader))
    dropped = allocation(after, buffer, "to-gemm")
    assert isinstance(dropped[-1], Alloc)
    after = replaced(after, dropped, dropped[-1].body)
    body = after.body
    for made_buffer in (made.left, made.right, made.sum):
        body = Alloc(made_buffer, body)
    return replace(after, body=body)


@node
class _Axis:
    """One axis fused of several: its loop variable, its extent and its rounded extent."""

    name: str
    iters: tuple[Iter, ...]
    extent: Expr
    padded: Expr

    @property
    def var(self) -> Var:
        return Var(f"v.{self.name}")

    @property
    def inside(self) -> Expr:
        """The condition that an index of the rounded axis is within the axis."""
        return TRUE if prove(self.padded <= self.extent) else self.var < self.extent

    def values(self) -> dict[str, Expr]:
        """The indices of the fused axes, computed from its variable."""
        found: dict[str, Expr] = {}
        rest: Expr = self.var
        for it in reversed(self.iters[1:]):
            found[it.name] = simplify(rest % it.extent)
            rest = simplify(rest // it.extent)
        return {**found, self.iters[0].name: rest} if self.iters else found


def _axis(name: str, iters: Sequence[Iter], multiple: int) -> _Axis:
    extent = simplify(product(tuple(it.extent for it in iters)))
    padded = simplify(ceildiv(extent, multiple) * multiple)
    if prove((extent % multiple).eq(0)):
        padded = extent
    return _Axis(name, tuple(iters), extent, padded)


class _Product:
    """The axes and operands of the GEMM that is built."""

    def __init__(
        self,
        func: Func,
        block: Block,
        gemm: GemmAxes,
        buffer: str,
        multiples: tuple[int, int, int],
        orders: tuple[str, str],
    ) -> None:
        m, n, k = multiples
        self.func = func
        self.block = block
        self.gemm = gemm
        self.buffer = buffer
        self.known = buffers(func)
        self.b = _axis("b", gemm.batch, 1)
        self.m = _axis("m", gemm.m, m)
        self.n = _axis("n", gemm.n, n)
        self.k = _axis("k", gemm.k, k)
        self.values = {
            name: value
            for a in (self.b, self.m, self.n, self.k)
            for name, value in a.values().items()
        }
        axes = {"m": self.m, "n": self.n, "k": self.k}
        self.left_axes, self.right_axes = (
            (self.b, *(axes[letter] for letter in order)) for order in orders
        )
        self.left = self._operand("left", self.left_axes, gemm.a)
        self.right = self._operand("right", self.right_axes, gemm.b)
        shape = tuple(a.padded for a in (self.b, self.m, self.n))
        self.sum = Buffer(f"{buffer}.sum", self.known[buffer].dtype, shape)
        self.known |= {b.name: b for b in (self.left, self.right, self.sum)}

    def _operand(self, word: str, axes: Sequence[_Axis], operand: Expr) -> Buffer:
        shape = tuple(a.padded for a in axes)
        return Buffer(f"{self.buffer}.{word}", operand_load(operand).dtype, shape)

    def nests(self) -> Stmt:
        """Both matrices, and their product."""
        return seq(
            self._copied(self.left, self.left_axes, self.gemm.a),
            self._copied(self.right, self.right_axes, self.gemm.b),
            self._summed(),
        )

    def _copied(self, to: Buffer, axes: Sequence[_Axis], operand: Expr) -> Stmt:
        load = operand_load(operand)
        extents = {a.var.name: a.padded for a in axes}
        indices = tuple(simplify(substitute(i, self.values), extents) for i in load.indices)
        shape = self.known[load.buffer].shape
        fits = all(prove(i < size, extents) for i, size in zip(indices, shape, strict=True))
        first, second = (
            a.inside if a is self.k else TRUE if fits else self._bounds(a, load, indices, extents)
            for a in axes[1:]
        )
        mask = first & second
        if load.mask is not None:
            mask = mask & simplify(substitute(load.mask, self.values), extents)
        value = Load(load.buffer, indices, load.dtype, None if mask is TRUE else mask)
        store = Store(to.name, tuple(a.var for a in axes), value)
        word = to.name.rpartition(".")[2]
        return self._nest(f"{self.block.name}.{word}", axes, store)

    def _bounds(
        self, axis: _Axis, load: Load, indices: Sequence[Expr], extents: Mapping[str, Expr]
    ) -> Expr:
        """The condition that an operand has elements at an index of M or N.

        That may be more than are in the axis: rows may have room behind them.
        """
        masked = load.mask is not None and bool(free_vars(load.mask) & {i.name for i in axis.iters})
        if len(axis.iters) != 1 or masked or axis.inside is TRUE:
            return axis.inside
        inside: Expr = TRUE
        for index, size in zip(indices, self.known[load.buffer].shape, strict=True):
            if axis.var.name in free_vars(index) and not prove(index < size, extents):
                inside = inside & (index < size)
        return inside

    def _summed(self) -> Stmt:
        left, right = (
            self._factor(operand, Load(to.name, tuple(a.var for a in axes), to.dtype))
            for operand, to, axes in (
                (self.gemm.a, self.left, self.left_axes),
                (self.gemm.b, self.right, self.right_axes),
            )
        )
        indices = (self.b.var, self.m.var, self.n.var)
        total = Load(self.sum.name, indices, self.sum.dtype)
        step = Store(total.buffer, total.indices, total + Binary("mul", left, right))
        start = Store(total.buffer, total.indices, const(0, self.sum.dtype))
        return self._nest(self.block.name, (self.b, self.m, self.n, self.k), step, start)

    def _factor(self, operand: Expr, load: Load) -> Expr:
        return Cast(operand.dtype, load) if isinstance(operand, Cast) else load

    def _nest(self, name: str, axes: Sequence[_Axis], body: Stmt, init: Stmt | None = None) -> Stmt:
        iters = tuple(
            Iter(a.var.name, "R" if init is not None and a is self.k else "S", a.padded, loop)
            for a in axes
            for loop in (Var(f"{name}.{a.name}"),)
        )
        nest: Stmt = make_block(name, iters, body, init, buffers=self.known)
        for a in reversed(axes):
            nest = For(f"{name}.{a.name}", a.padded, "serial", nest)
        return nest

    def reader(self) -> Block:
        """The one block that reads the sum, each element where it writes one."""
        found = readers(self.func, self.buffer)
        leaf = found[0][-1] if len(found) == 1 else None
        if not isinstance(leaf, Block) or not isinstance(leaf.body, Store) or leaf.init is not None:
            message = f'what block "{self.block.name}" sums must have one reader, which is no sum'
            raise refuse(self.func, "to-gemm.reader", message, self.block)
        return leaf

    def read(self, reader: Block) -> Stmt:
        """The reader, over the rows and columns of the product."""
        axes = (self.b, self.m, self.n)
        values, extents = self._reader_values(reader), {a.var.name: a.extent for a in axes}
        total = Load(self.sum.name, tuple(a.var for a in axes), self.sum.dtype)

        def load(e: Expr) -> Expr | None:
            return total if isinstance(e, Load) and e.buffer == self.buffer else None

        body = substitute_stmt(reader.body, values)
        assert isinstance(body, Store)
        indices = tuple(simplify(i, extents) for i in body.indices)
        value = rewrite(simplify_loads(body.value, extents), load)
        body = Store(body.buffer, indices, value, body.mask)
        iters = tuple(Iter(a.var.name, "S", a.extent, Var(f"{reader.name}.{a.name}")) for a in axes)
        nest: Stmt = make_block(reader.name, iters, body, buffers=self.known)
        for a in reversed(axes):
            nest = For(f"{reader.name}.{a.name}", a.extent, "serial", nest)
        return nest

    def _reader_values(self, reader: Block) -> dict[str, Expr]:
        """What the reader's axes are at rows and columns: it must read at its axes as they are."""
        (region,) = (r for r in reader.reads if r.buffer == self.buffer)
        assert isinstance(self.block.body, Store)
        pairs = zip(region.ranges, self.block.body.indices, strict=True)
        values = {str(start): self.values[str(index)] for (start, _), index in pairs}
        if set(values) != {it.name for it in reader.iters}:
            message = f'block "{reader.name}" does not read {self.buffer!r} element by element'
            raise refuse(self.func, "to-gemm.index", message, reader)
        return values
