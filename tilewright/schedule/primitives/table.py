"""The table of primitives: the names of schedule steps, and the modules of their functions.

A primitive is a function `(func, *args) -> Func`. If it makes loops, blocks or buffers, a second
function with the same arguments gives their names to later steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.core.node import node
from tilewright.ir.loop.nodes import Func


@node
class Primitive:
    """A row: `names` is the function that gives result names; `moves` changes the order of runs."""

    module: str
    names: str = ""
    moves: bool = False


PRIMITIVES: dict[str, Primitive] = {
    "add_unit_loop": Primitive("add_unit_loop", names="add_unit_loop_name"),
    "annotate": Primitive("annotate"),
    "bind": Primitive("bind", moves=True),
    "blockize": Primitive("blockize", names="blockize_name"),
    "cache_read": Primitive("cache_read", names="cache_read_name"),
    "cache_write": Primitive("cache_write", names="cache_write_name"),
    "compute_at": Primitive("compute_at", names="axis_names", moves=True),
    "decompose_reduction": Primitive("decompose_reduction", names="init_name", moves=True),
    "fuse": Primitive("fuse", names="fused_name", moves=True),
    "inline": Primitive("inline"),
    "narrow_accumulator": Primitive("narrow_accumulator"),
    "pad": Primitive("pad"),
    "pad_reduction": Primitive("pad_reduction"),
    "parallel": Primitive("parallel", moves=True),
    "reindex_cache_read": Primitive("reindex_cache_read", names="reindex_cache_read_name"),
    "reorder": Primitive("reorder", moves=True),
    "reuse_buffer": Primitive("reuse_buffer"),
    "reverse_compute_at": Primitive("reverse_compute_at", names="axis_names", moves=True),
    "reverse_inline": Primitive("reverse_inline"),
    "rfactor": Primitive("rfactor", names="rfactor_name"),
    "set_scope": Primitive("set_scope"),
    "split": Primitive("split", names="split_names", moves=True),
    "tensorize": Primitive("tensorize"),
    "tile_attention": Primitive("tile_attention"),
    "to_gemm": Primitive("to_gemm"),
    "transform_layout": Primitive("transform_layout"),
    "unroll": Primitive("unroll"),
    "vectorize": Primitive("vectorize", moves=True),
}


@cache
def rewrite_of(name: str) -> Callable[..., Func]:
    """The function of a primitive, imported when first asked for."""
    found: Callable[..., Func] = getattr(_module(name), name)
    return found


@cache
def names_of(name: str) -> Callable[..., Any] | None:
    """The function that names what a primitive makes, `None` where it makes nothing."""
    row = PRIMITIVES[name]
    found: Callable[..., Any] | None = getattr(_module(name), row.names) if row.names else None
    return found


def _module(name: str) -> Any:
    return import_module(f"tilewright.schedule.primitives.{PRIMITIVES[name].module}")
