"""Vectors that repeat elements of a short run: load the run once, and pick from it.

    C[...] = A[i + ramp(0, 1, 8) // 2]      →      C[...] = pick 0 0 1 1 2 2 3 3 of A[ramp(i, 1, 4)]

An image resized to twice its size reads so. Element by element, each lane would be a load of its
own. Where lanes are masked from some lane on, so is the run.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.affine import Affine, from_affine, to_affine
from tilewright.arith.expr import Binary, Expr, Load
from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.arith.walk import loads, rewrite
from tilewright.core.dtypes import BOOL
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import map_exprs


def repeat_loads(func: Func) -> Func:
    """`func` with repeated elements loaded once."""
    memo: dict[Expr, Expr] = {}

    def once(e: Expr) -> Expr:
        gathers = any(not isinstance(i, Ramp) for load in loads(e) for i in load.indices)
        return rewrite(e, _picked, memo) if gathers else e

    return replace(func, body=map_exprs(func.body, once))


def _picked(e: Expr) -> Expr | None:
    """A load as lanes of a contiguous one, if it is such a load."""
    if not isinstance(e, Load) or e.lanes == 1 or e.dtype == BOOL or len(e.indices) > 1:
        return None
    found = None if isinstance(e.indices[0], Ramp) else _run(e.indices[0])
    if found is None:
        return None
    base, offsets = found
    first, count = min(offsets), max(offsets) - min(offsets) + 1
    if not 1 < count < e.lanes:
        return None
    mask = e.mask
    if mask is not None and mask.lanes > 1:
        if not _ends(mask) or list(offsets) != sorted(offsets):
            return None
        # The first lane that needs an element, or one behind it, decides whether it is loaded.
        deciding = tuple(
            next(n for n, o in enumerate(offsets) if o >= first + i) for i in range(count)
        )
        mask = Shuffle(mask, mask, deciding)
    run = Load(e.buffer, (Ramp(simplify(base + first), 1, count),), e.dtype, mask)
    return Shuffle(run, run, tuple(o - first for o in offsets))


def _run(index: Expr) -> tuple[Expr, tuple[int, ...]] | None:
    """The scalar part of an index vector, and what each lane adds to it."""
    form = to_affine(index)
    scalars = {atom: c for atom, c in form.coeffs.items() if atom.lanes == 1}
    offsets = [0] * index.lanes
    for atom, coefficient in form.coeffs.items():
        if atom.lanes > 1:
            lanes = known_lanes(atom)
            if lanes is None:
                return None
            offsets = [o + coefficient * n for o, n in zip(offsets, lanes, strict=True)]
    return from_affine(Affine(scalars, form.constant)), tuple(offsets)


def _ends(mask: Expr) -> bool:
    """Whether lanes are masked from some lane on: `a < b` where `a` grows with the lane."""
    if not (isinstance(mask, Binary) and mask.op == "lt" and mask.b.lanes == 1):
        return False
    found = _run(mask.a)
    return found is not None and list(found[1]) == sorted(found[1])
