"""Adjacent scalars that are multiplied with vectors are loaded as one vector.

    C[ramp(0, 1, 4)] += A[k * 4] * B[...]        C[...] += lane(A[ramp(k * 4, 1, 4)], 0) * B[...]
    C[ramp(0, 1, 4)] += A[k * 4 + 1] * B[...]  →  C[...] += lane(A[ramp(k * 4, 1, 4)], 1) * B[...]
    ...                                          ...

A machine that multiplies a vector by one element of another then does a quarter of the loads.
Only for targets that have such an instruction; elsewhere a broadcasting load is as good. What
threads compute element by element from shared memory is read as vectors, too, where these are
aligned.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import Expr, Load
from tilewright.arith.simplify import prove
from tilewright.arith.vector import Lane, Ramp
from tilewright.arith.walk import loads, rewrite
from tilewright.ir.loop.nodes import Func, Seq, Stmt, Store
from tilewright.ir.loop.walk import buffers, map_stmt
from tilewright.target.target import Target


def combine_loads(func: Func, target: Target) -> Func:
    """`func` with neighbouring scalar loads combined, where the target can use lanes."""
    if not target.has_lane_fma:
        return func
    shared = frozenset(b.name for b in buffers(func).values() if b.scope == "shared")
    return replace(func, body=_combine(func.body, target, shared))


def _combine(stmt: Stmt, target: Target, shared: Collection[str]) -> Stmt:
    stmt = map_stmt(stmt, lambda s: _combine(s, target, shared))
    if not isinstance(stmt, Seq) or not all(isinstance(s, Store) for s in stmt.stmts):
        return stmt
    stores = [s for s in stmt.stmts if isinstance(s, Store)]
    lanes = _lanes(stores, target, shared)
    if not lanes:
        return stmt
    memo: dict[Expr, Expr] = {}
    return Seq(tuple(replace(s, value=rewrite(s.value, lanes.get, memo)) for s in stores))


def _lanes(stores: Sequence[Store], target: Target, shared: Collection[str]) -> dict[Expr, Expr]:
    """What takes the place of each scalar load that has all its neighbours."""
    written = {s.buffer for s in stores}
    groups: dict[tuple[object, ...], dict[int, Load]] = {}
    for load in _scalars(stores, shared):
        if load.buffer not in written:
            form = to_affine(load.indices[0])
            key = (load.buffer, load.dtype, frozenset(form.coeffs.items()))
            groups.setdefault(key, {})[form.constant] = load
    found: dict[Expr, Expr] = {}
    for members in groups.values():
        found.update(_runs(members, target, shared))
    return found


def _scalars(stores: Iterable[Store], shared: Collection[str]) -> Iterable[Load]:
    """Unmasked scalar loads that vectors are computed with, and those from shared memory."""
    for s in stores:
        for x in loads(s.value):
            if x.lanes == 1 and x.mask is None and (s.value.lanes > 1 or x.buffer in shared):
                yield x


def _runs(
    members: dict[int, Load], target: Target, shared: Collection[str]
) -> Iterable[tuple[Expr, Expr]]:
    """Whole vectors of consecutive elements, from the first on."""
    offsets = sorted(members)
    width = target.lanes(next(iter(members.values())).dtype.bits)
    at = 0 if width > 1 else len(offsets)
    while at + width <= len(offsets):
        first = offsets[at]
        base = members[first]
        gaps = offsets[at + width - 1] - first != width - 1
        if gaps or (base.buffer in shared and not prove((base.indices[0] % width).eq(0))):
            at += 1
            continue
        vector = Load(base.buffer, (Ramp(base.indices[0], 1, width),), base.dtype)
        yield from ((members[first + i], Lane(vector, i)) for i in range(width))
        at += width
