"""How much of a convolution's work is left where tiles skip taps in the padding.

A tile of rows skips a tap if all of its rows would read padding there. A tile that lies within a
line, at its end, skips the taps beyond; one that goes on in the next line skips none along lines.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tilewright.arith.affine import stride_of
from tilewright.arith.evaluate import compile_index
from tilewright.arith.expr import Load, as_int, const
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.annotations import FINITE_WEIGHTS
from tilewright.ir.loop.nodes import Block, Func, Iter
from tilewright.ir.loop.padded_copies import Inside, padded_copies
from tilewright.schedule.analysis.blocks import reads_of, reductions

# Rows that are looked at: some lines, or images, are like all.
MAX_ROWS = 4096


def work_left(func: Func, block: Block, row: Iter | None, most: int) -> tuple[float, ...]:
    """The part of the steps of K that tiles of 1, 2, ... `most` rows execute; empty if all."""
    extent = None if row is None else as_int(row.extent)
    if row is None or not extent or not FINITE_WEIGHTS.is_on(func):
        return ()
    copies = padded_copies(func.body)
    reads = [r for r in reads_of(block) if r.buffer in copies]
    if len(reads) != 1:
        return ()
    places = [_places(reads[0], inside, block, row, extent) for inside in copies[reads[0].buffer]]
    known = [place for place in places if place is not None]
    return tuple(_executed(known, height) for height in range(1, most + 1)) if known else ()


# Where each row begins, how far each tap is from there; what is inside begins and ends.
_Places = tuple[np.ndarray, list[int], int, int]


def _places(load: Load, inside: Inside, block: Block, row: Iter, extent: int) -> _Places | None:
    """One dimension of the padded copy as rows and taps read it."""
    index, begin, end = load.indices[inside.dim], as_int(inside.begin), as_int(inside.end)
    taps = [it for it in reductions(block) if it.name in free_vars(index)]
    strides = [stride_of(index, it.name) for it in taps]
    counts = [as_int(it.extent) for it in taps]
    if begin is None or end is None or None in (*strides, *counts):
        return None
    others = {name: const(0) for name in free_vars(index) if name != row.name}
    start = compile_index(substitute(index, others), (row.name,))
    rows = np.array([start(m) for m in range(min(extent, MAX_ROWS))])
    steps = product(*(range(count or 0) for count in counts))
    offsets = [sum(k * (s or 0) for k, s in zip(step, strides, strict=True)) for step in steps]
    return rows, offsets, begin, end


def _executed(places: list[_Places], height: int) -> float:
    """The part of all steps that tiles of `height` rows execute."""
    whole: np.ndarray = np.ones(())
    for rows, offsets, begin, end in places:
        tiles = [rows[at : at + height] for at in range(0, len(rows), height)]
        least, most = (np.array([f(tile) for tile in tiles]) for f in (np.min, np.max))
        taps = np.array(offsets)[:, None]
        inside = (most + taps >= begin) & (least + taps < end)
        whole = whole * inside.sum(axis=0) / len(offsets)
    return float(whole.mean())
