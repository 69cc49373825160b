"""In which order the axes of a result lie in memory: others that torch gives it are kept.

A result of torch need not be contiguous: the product of a matrix that was transposed lies as that
did. Who takes it can see that, by its strides, and what reads it by strides relies on it.
"""

from __future__ import annotations

from typing import Any

import torch


def axes_in_memory(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """Its axes from the outermost to the innermost; `None` where it is contiguous.

    One whose elements overlap or have room between them has no such order either.
    """
    shape = [_number(d) for d in tensor.shape]
    strides = [_number(s) for s in tensor.stride()]
    if 0 in shape or _is_packed(shape, strides):
        return None
    axes = sorted(range(len(shape)), key=lambda axis: -strides[axis])  # equal ones stay in order
    packed = _is_packed([shape[a] for a in axes], [strides[a] for a in axes])
    return tuple(axes) if packed else None


def _is_packed(shape: list[int], strides: list[int]) -> bool:
    """Whether each axis begins where the next ends; those of one element may lie anywhere."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _number(size: Any) -> int:
    """A size while torch traces; asking for one that is open does not settle it."""
    if isinstance(size, torch.SymInt):
        hint = size.node.hint
        return 2 if hint is None else int(hint)
    return int(size)
