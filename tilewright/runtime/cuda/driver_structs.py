"""Structures of the driver as it lays them out: launches, nodes of graphs, edges between them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

_PTR, _U32, _INT, _BYTE = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_ubyte
_SIDES = tuple((f"{what}_{axis}", _U32) for what in ("grid", "block") for axis in "xyz")
# The attributes of a launch that waits by itself for the one before it in its stream, and of one
# all of whose blocks run at once; the bytes of the value of any.
EARLY, TOGETHER, _VALUE_BYTES = 6, 2, 64

Shape = tuple[int, int, int]
"""The blocks of a launch, the threads and the shared bytes of each."""


class KernelNodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = (
        ("function", _PTR),
        *_SIDES,
        ("shared", _U32),
        ("arguments", _PTR),
        ("extra", _PTR),
    )


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute, of which the value is a number."""

    _fields_ = (("what", ctypes.c_uint64), ("value", _INT), ("rest", _BYTE * 60))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *_SIDES,
        ("shared", _U32),
        ("stream", _PTR),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", _U32),
    )


class Edge(ctypes.Structure):
    """CUgraphEdgeData."""

    _fields_ = (("source", _BYTE), ("target", _BYTE), ("kind", _BYTE), ("rest", _BYTE * 5))


def node(function: int, shape: Shape, arguments: Any) -> KernelNodeParams:
    """A launch as a node of a graph."""
    grid, threads, shared = shape
    sizes = (grid, 1, 1, threads, 1, 1, shared)
    return KernelNodeParams(function, *sizes, ctypes.cast(arguments, _PTR), None)


def yes() -> Any:
    """The value of an attribute that holds."""
    return (_INT * (_VALUE_BYTES // 4))(1)


def launch(shape: Shape, attribute: int | None) -> LaunchConfig:
    """A launch whose stream is still to be told; `attribute` is `EARLY`, `TOGETHER` or neither."""
    grid, threads, shared = shape
    attributes = (LaunchAttribute * 1)(LaunchAttribute(attribute or 0, 1))
    count = 0 if attribute is None else 1
    return LaunchConfig(grid, 1, 1, threads, 1, 1, shared, 0, attributes, count)


def edges(earlier: Sequence[int], node: int, early: bool) -> tuple[Any, Any, Any, int]:
    """The edges from some nodes to one that waits for them, or has begun by then and waits itself.

    Lists of where they begin, where they end, and of which kind they are; their number.
    """
    count = len(earlier)
    kinds = (Edge * count)(*(Edge(1, 0, 1) if early else Edge() for _ in earlier))
    return (_PTR * count)(*earlier), (_PTR * count)(*[node] * count), kinds, count
