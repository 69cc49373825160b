"""Pieces of loop functions that operators without a closed formula are written in.

buffers = parameters(ins, outs)                                  # x0, x1, ..., y0, ...
body = spatial_block("flip", outs[0].shape, element, buffers)    # a block in loops of its own
Func("flip", tuple(buffers.values()), ("y0",), body)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import Var
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Buffer, For, Iter, Stmt
from tilewright.ir.types import Shape, TensorType


def parameters(ins: Sequence[TensorType | None], outs: Sequence[TensorType]) -> dict[str, Buffer]:
    """The parameters of a loop function by name: `x0, ..., y0, ...`; absent inputs are left out."""
    named = [(f"x{i}", t) for i, t in enumerate(ins)] + [(f"y{i}", t) for i, t in enumerate(outs)]
    return {name: Buffer(name, t.dtype, t.shape) for name, t in named if t is not None}


def nest(names: Sequence[str], extents: Shape, body: Stmt) -> Stmt:
    """`body` within serial loops, the first outermost."""
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        body = For(name, extent, "serial", body)
    return body


def spatial_block(
    name: str, extents: Shape, body: Callable[..., Stmt], buffers: dict[str, Buffer]
) -> Stmt:
    """A block over independent iterations in loops of its own; `body` gets the iterators."""
    loops = [f"{name}.l{d}" for d in range(len(extents))]
    names = [f"{name}.v{d}" for d in range(len(extents))]
    iters = tuple(Iter(v, "S", n, Var(i)) for v, n, i in zip(names, extents, loops, strict=True))
    block = make_block(name, iters, body(*(Var(v) for v in names)), buffers=buffers)
    return nest(loops, extents, block)
