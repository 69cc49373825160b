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
A stage that no output needs has no loops: nothing is left of a tensor that is multiplied by the
integer 0, or is masked out as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.dtype_limits import neutral
from tilewright.arith.expr import FALSE, Expr, Load, Reduce, Var, binary, const
from tilewright.arith.operators import COMBINE
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads, rewrite
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Iter, Seq, Stmt, Store
from tilewright.ir.tensor.nodes import Program, Stage, Tensor


def program_func(program: Program) -> Func:
    """The loop function that computes `program`, not yet scheduled."""
    stages = _needed([_simplified(s) for s in program.stages], program.outputs)
    buffers = {t.name: _buffer(t) for t in program.inputs}
    buffers.update((s.name, _buffer(s.tensor)) for s in stages)
    body: Stmt = Seq(tuple(_nest(s, buffers) for s in stages))
    for s in reversed(stages):
        if s.name not in program.outputs:
            body = Alloc(buffers[s.name], body)
    names = (*(t.name for t in program.inputs), *dict.fromkeys(program.outputs))
    return Func(
        program.name, tuple(buffers[n] for n in names), tuple(dict.fromkeys(program.outputs)), body
    )


def _needed(stages: Sequence[Stage], outputs: Sequence[str]) -> list[Stage]:
    """The stages that outputs are made of, in order."""
    read, kept = set(outputs), list[Stage]()
    for s in reversed(stages):
        if s.name in read:
            kept.append(s)
            read.update(load.buffer for load in loads(s.body))
    return kept[::-1]


def _buffer(t: Tensor) -> Buffer:
    return Buffer(t.name, t.dtype, t.shape)


def _nest(stage: Stage, buffers: dict[str, Buffer]) -> Stmt:
    axes = [(a, "S", n) for a, n in zip(stage.axes, stage.shape, strict=True)]
    reduce = stage.body if isinstance(stage.body, Reduce) else None
    if reduce is not None:
        axes += [(v.name, "R", n) for v, n in reduce.axes]
    iters = tuple(Iter(a, kind, n, Var(f"{stage.name}.{a}")) for a, kind, n in axes)
    body, init = _statements(stage, reduce)
    nest: Stmt = make_block(stage.name, iters, body, init, buffers=buffers)
    for a, _, n in reversed(axes):
        nest = For(f"{stage.name}.{a}", n, "serial", nest)
    return nest


def _statements(stage: Stage, reduce: Reduce | None) -> tuple[Stmt, Stmt | None]:
    """The block's body and, for a reduction, what starts it."""
    element = Load(stage.name, stage.indices, stage.dtype)
    if reduce is None:
        return Store(stage.name, stage.indices, stage.body), None
    step = binary(COMBINE[reduce.op], element, reduce.body)
    start = Store(stage.name, stage.indices, neutral(reduce.op, stage.dtype))
    return Store(stage.name, stage.indices, step), start


def _simplified(stage: Stage) -> Stage:
    """Simplify the indices of every load; element arithmetic stays as it is written."""
    extents = dict(zip(stage.axes, stage.shape, strict=True))
    if isinstance(stage.body, Reduce):
        extents.update((v.name, n) for v, n in stage.body.axes)

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        mask = None if e.mask is None else simplify(e.mask, extents)
        if mask is FALSE:
            return const(0, e.dtype)
        return Load(e.buffer, tuple(simplify(i, extents) for i in e.indices), e.dtype, mask)

    body = rewrite(stage.body, load)
    if isinstance(body, Reduce) and body.op == "sum" and body.body is const(0, body.dtype):
        body = body.body
    return Stage(stage.name, stage.shape, stage.axes, body)
