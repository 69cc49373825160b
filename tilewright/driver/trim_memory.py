"""After a compilation: memory that only the compiler needed is returned to the system.

A process that compiles a model mostly runs it for long afterwards. Memory that is free but kept for
later is returned, and so are the pages of LLVM's code: they come back from its file when they are
needed again.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_CODE_OF = "libllvmlite"


def release_memory(maps: Path = _MAPS) -> None:
    """Return free heap memory and LLVM's code pages; does nothing where the system cannot."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(ctypes.c_size_t(0))
    for start, end in _code_pages(maps):
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def _code_pages(maps: Path) -> Iterator[tuple[int, int]]:
    """Where LLVM's code lies: only what is executable, since that is as in the file."""
    try:
        lines = maps.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        place, access, *_, file = line.split()
        if access.startswith("r-x") and _CODE_OF in Path(file).name:
            start, _, end = place.partition("-")
            yield int(start, 16), int(end, 16)
