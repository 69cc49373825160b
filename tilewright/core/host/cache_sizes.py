"""The caches of this machine, as Linux reports them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_HERE = Path("/sys/devices/system/cpu/cpu0/cache")


def cache_sizes(folder: Path = _HERE) -> Mapping[int, int]:
    """Bytes of the data and unified caches by level; empty where the system does not tell."""
    sizes: dict[int, int] = {}
    for index in sorted(folder.glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            size = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and size.endswith("K"):
            sizes[level] = int(size[:-1]) * 1024
    return sizes
