"""A tensor program → a loop function: every stage becomes a nest of serial loops around a block.

    y: f32[M] = [i] sum(k in K) x[i, k]

    for y.i in serial(M) {
      for y.k in serial(K) {
        block "y" [i: S(M) = y.i, k: R(K) = y.k] reads x[i, k] writes y[i]
          init { y[i] = 0.0 }
          { y[i] = y[i] + x[i, k] }
      }
    }

Loops are called `stage.axis`; stages that are not outputs live in buffers of the function's own.
"""

from __future__ import annotations

from tilewright.arith.expr import COMBINE, Expr, Load, Reduce, Var, binary, neutral
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Iter, Seq, Stmt, Store
from tilewright.ir.loop.regions import make_block
from tilewright.ir.tensor.nodes import Program, Stage, Tensor


def program_func(program: Program) -> Func:
    """The loop function that computes `program`, not yet scheduled."""
    buffers = {t.name: _buffer(t) for t in program.inputs}
    buffers.update((s.name, _buffer(s.tensor)) for s in program.stages)
    body: Stmt = Seq(tuple(_nest(s, buffers) for s in program.stages))
    for s in reversed(program.stages):
        if s.name not in program.outputs:
            body = Alloc(buffers[s.name], body)
    names = (*(t.name for t in program.inputs), *dict.fromkeys(program.outputs))
    return Func(
        program.name, tuple(buffers[n] for n in names), tuple(dict.fromkeys(program.outputs)), body
    )


def _buffer(t: Tensor) -> Buffer:
    return Buffer(t.name, t.dtype, t.shape)


def _nest(stage: Stage, buffers: dict[str, Buffer]) -> Stmt:
    axes = [(a, "S", n) for a, n in zip(stage.axes, stage.shape, strict=True)]
    reduce = stage.body if isinstance(stage.body, Reduce) else None
    if reduce is not None:
        axes += [(v.name, "R", n) for v, n in reduce.axes]
    iters = tuple(Iter(a, kind, n, Var(f"{stage.name}.{a}")) for a, kind, n in axes)
    body, init = _statements(stage, reduce, {a: n for a, _, n in axes})
    nest: Stmt = make_block(stage.name, iters, body, init, buffers=buffers)
    for a, _, n in reversed(axes):
        nest = For(f"{stage.name}.{a}", n, "serial", nest)
    return nest


def _statements(
    stage: Stage, reduce: Reduce | None, extents: dict[str, Expr]
) -> tuple[Stmt, Stmt | None]:
    """The block's body and, for a reduction, what starts it."""
    element = Load(stage.name, stage.indices, stage.dtype)
    if reduce is None:
        return Store(stage.name, stage.indices, _simplify(stage.body, extents)), None
    step = binary(COMBINE[reduce.op], element, _simplify(reduce.body, extents))
    start = Store(stage.name, stage.indices, neutral(reduce.op, stage.dtype))
    return Store(stage.name, stage.indices, step), start


def _simplify(body: Expr, extents: dict[str, Expr]) -> Expr:
    """Simplify the indices of every load; element arithmetic stays as it is written."""

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        mask = None if e.mask is None else simplify(e.mask, extents)
        return Load(e.buffer, tuple(simplify(i, extents) for i in e.indices), e.dtype, mask)

    return rewrite(body, load)
