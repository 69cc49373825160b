"""Programs that torch.export saves, and what becomes of them when their entries are changed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch


def saved(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    path: Path,
    named: Any = None,
    shapes: Any = None,
) -> Path:
    """The file of an exported module."""
    with torch.no_grad():
        program = torch.export.export(module, args, named, dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


def entries(path: Path) -> dict[str, bytes]:
    """The entries of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path: Path, to: Path, changes: Mapping[str, Callable[[bytes], bytes]]) -> Path:
    """A copy of an archive in which entries with these endings are changed."""
    found = entries(path)
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for name, data in found.items():
            ending = next((e for e in changes if name.endswith(e)), None)
            archive.writestr(name, data if ending is None else changes[ending](data))
    return to
