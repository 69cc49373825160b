"""Adjacent vectors of strided stores: interleave them in registers and store contiguous vectors.

    C[ramp(0, 2, 4)] = a             alloc C.strands: f32[8] @register
    C[ramp(1, 2, 4)] = b      →      C.strands[ramp(0, 1, 4)] = a
                                     C.strands[ramp(4, 1, 4)] = b
                                     C[ramp(0, 1, 4)] = pick 0 4 1 5 of both
                                     C[ramp(4, 1, 4)] = pick 2 6 3 7 of both

The phases of a transposed convolution are stored so. Element by element, each lane would be a store
of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from tilewright.arith.expr import FALSE, Expr, Load, as_int, const
from tilewright.arith.known_lanes import known_lanes
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.arith.walk import conjuncts, loads
from tilewright.core.dtypes import BOOL
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, Seq, Stmt, Store
from tilewright.ir.loop.walk import buffers, map_stmt, seq

# Strides whose vectors take fewer shuffles than elements.
STRIDES = (2, 3, 4)


def interleave_stores(func: Func) -> Func:
    """`func` with strided stores that together fill a range as contiguous ones."""
    return replace(func, body=_Interleaver(buffers(func)).stmt(func.body))


class _Interleaver:
    def __init__(self, known: Iterable[str]) -> None:
        self.names = set(known)

    def stmt(self, s: Stmt) -> Stmt:
        s = map_stmt(s, self.stmt)
        if not isinstance(s, Seq):
            return s
        result: list[Stmt] = []
        at = 0
        while at < len(s.stmts):
            strands = _strands(s.stmts[at:])
            result.append(self._interleaved(strands) if strands else s.stmts[at])
            at += max(1, len(strands))
        return seq(*result) if len(result) < len(s.stmts) else s

    def _interleaved(self, strands: Sequence[Store]) -> Stmt:
        """The values are held in registers until all are there, then stored in order."""
        buffer = self._buffer(strands)
        lanes = strands[0].value.lanes
        places = [Ramp(const(i * lanes), 1, lanes) for i in range(len(strands))]
        holding = [Store(buffer.name, (p,), s.value) for p, s in zip(places, strands, strict=True)]
        vectors = _interleaved([Load(buffer.name, (p,), buffer.dtype) for p in places])
        base = _ramp(strands[0]).base
        storing = [
            Store(strands[0].buffer, (Ramp(simplify(base + i * lanes), 1, lanes),), vector, mask)
            for i, (vector, mask) in enumerate(zip(vectors, _masks(strands), strict=True))
            if mask is not FALSE
        ]
        return Alloc(buffer, seq(*holding, *storing))

    def _buffer(self, strands: Sequence[Store]) -> Buffer:
        first, count = strands[0], 0
        while (name := f"{first.buffer}.strands{count}") in self.names:
            count += 1
        self.names.add(name)
        size = const(len(strands) * first.value.lanes)
        return Buffer(name, first.value.dtype, (size,), "register")


def _strands(stmts: Sequence[Stmt]) -> tuple[Store, ...]:
    """The first stores, if they are as many as their stride and each is one element on."""
    first = stmts[0]
    if not isinstance(first, Store) or not isinstance(first.indices[0], Ramp):
        return ()
    stride = first.indices[0].stride
    stores = tuple(s for s in stmts[:stride] if isinstance(s, Store))
    if stride not in STRIDES or len(stores) < stride or first.value.dtype == BOOL:
        return ()
    fits = all(_follows(s, first, offset) for offset, s in enumerate(stores))
    return stores if fits and _stored(stores) is not None else ()


def _follows(store: Store, first: Store, offset: int) -> bool:
    index = store.indices[0]
    if store.buffer != first.buffer or not isinstance(index, Ramp):
        return False
    if _whole_mask(store) != _whole_mask(first):
        return False
    form = (index.stride, index.count, store.value.lanes)
    if form != (_ramp(first).stride, _ramp(first).count, index.count):
        return False
    own = any(load.buffer == first.buffer for load in loads(store.value))
    return not own and as_int(simplify(index.base - _ramp(first).base)) == offset


def _whole_mask(store: Store) -> frozenset[Expr]:
    """The conditions of a store that are the same for all lanes."""
    return frozenset(c for c in _conditions(store) if c.lanes == 1)


def _conditions(store: Store) -> tuple[Expr, ...]:
    return () if store.mask is None else tuple(conjuncts(store.mask))


def _stored(strands: Sequence[Store]) -> int | None:
    """How many elements are stored, if those are known to be the first ones of the range."""
    lanes = strands[0].value.lanes
    active = []
    for store in strands:
        masks = [known_lanes(c) for c in _conditions(store) if c.lanes > 1]
        active.append([all(m is None or m[n] for m in masks) for n in range(lanes)])
        if None in masks:
            return None
    stored = [lane for same in zip(*active, strict=True) for lane in same]
    return sum(stored) if stored == sorted(stored, reverse=True) else None


def _masks(strands: Sequence[Store]) -> list[Expr | None]:
    """The mask of each contiguous vector; `FALSE` where nothing of it is stored."""
    lanes, stored = strands[0].value.lanes, _stored(strands)
    assert stored is not None
    masks: list[Expr | None] = []
    for first in range(0, lanes * len(strands), lanes):
        conditions = [c for c in _conditions(strands[0]) if c.lanes == 1]
        if stored - first < lanes:
            conditions.append(Ramp(const(0), 1, lanes) < stored - first)
        whole = reduce(and_, conditions) if conditions else None
        masks.append(whole if stored > first else FALSE)
    return masks


def _ramp(store: Store) -> Ramp:
    index = store.indices[0]
    assert isinstance(index, Ramp)
    return index


def _interleaved(vectors: Sequence[Expr]) -> list[Expr]:
    """The first element of each vector, then the second of each, and so on."""
    if len(vectors) == 1:
        return list(vectors)
    if len(vectors) % 2:
        return _picked(vectors)
    pairs = zip(_interleaved(vectors[::2]), _interleaved(vectors[1::2]), strict=True)
    return [half for a, b in pairs for half in _zipped(a, b)]


def _picked(vectors: Sequence[Expr]) -> list[Expr]:
    """The same of an odd number of vectors: each result picks from one after the other."""
    number, lanes = len(vectors), vectors[0].lanes
    results = []
    for start in range(0, number * lanes, lanes):
        places = [divmod(start + lane, number) for lane in range(lanes)]
        result = vectors[0]
        for which in range(1, number):
            picks = [
                lanes + at if of == which else (at if which == 1 else lane)
                for lane, (at, of) in enumerate(places)
            ]
            result = Shuffle(result, vectors[which], tuple(picks))
        results.append(result)
    return results


def _zipped(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Elements of two vectors by turns, as two vectors."""
    picks = [n for lane in range(a.lanes) for n in (lane, a.lanes + lane)]
    return Shuffle(a, b, tuple(picks[: a.lanes])), Shuffle(a, b, tuple(picks[a.lanes :]))
