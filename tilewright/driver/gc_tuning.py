"""Fewer runs of Python's cyclic garbage collector while a model is compiled.

Compiling makes many small objects that live long and are in no cycle. Scanning them again and again
frees next to nothing, and took an eighth of the compile time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made between two searches among the young, and how many of those until older ones.
COMPILING_THRESHOLDS = (20_000, 20, 50)


@contextmanager
def relaxed_gc() -> Iterator[None]:
    """Collect rarely in this block, unless the program does so even more rarely, or never."""
    before = gc.get_threshold()
    if 0 < before[0] < COMPILING_THRESHOLDS[0]:
        gc.set_threshold(*COMPILING_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
