"""The meaning of loop functions: `run_func` executes one in place on NumPy arrays.

Obvious and slow, with the exact semantics of every operation. Loops run in order whatever their
kind. Fresh allocations hold NaN or an unlikely number, so that reading them shows; an access
outside a buffer is an error that names the buffer, the index and the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Var
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.to_python import Compiled, compile_func
from tilewright.ir.loop.nodes import Buffer, Func
from tilewright.ir.scalar_semantics import Array, quiet


def run_func(
    func: Func, buffers: Mapping[str, Array], sizes: Mapping[str, int] | None = None
) -> None:
    """Run `func` on `buffers` by parameter name; outputs are written in place.

    Sizes that are dimensions of a parameter may be left out.
    """
    known = {**_sizes_of(func, buffers), **(sizes or {})}
    for b in func.params:
        _check_param(b, buffers[b.name], known, b.name in func.outputs)
    compiled = _compiled(func)
    unknown = [name for name in compiled.sizes if name not in known]
    if unknown:
        raise ExecutionError("interp.size", f"no value for the size {', '.join(unknown)}")
    with quiet():
        compiled.run(buffers, known)


@lru_cache(maxsize=64)
def _compiled(func: Func) -> Compiled:
    return compile_func(func)


def _sizes_of(func: Func, buffers: Mapping[str, Array]) -> dict[str, int]:
    """Sizes read off the arrays, wherever a dimension is a plain variable."""
    missing = [b.name for b in func.params if b.name not in buffers]
    if missing:
        raise ExecutionError("interp.missing", f"no array for {', '.join(missing)}")
    return {
        dim.name: size
        for b in func.params
        for dim, size in zip(b.shape, buffers[b.name].shape, strict=False)
        if isinstance(dim, Var)
    }


def _check_param(b: Buffer, array: Array, sizes: Mapping[str, int], is_output: bool) -> None:
    shape = tuple(evaluate(dim, sizes) for dim in b.shape)
    if array.dtype != b.dtype.numpy or array.shape != shape:
        raise ExecutionError(
            "interp.argument",
            f"{b} cannot be an array of {array.dtype} and shape {list(array.shape)}",
            help=f"give {b.dtype.numpy} of shape {list(shape)}",
        )
    if is_output and not array.flags.writeable:
        raise ExecutionError("interp.argument", f"output {b.name!r} is a read-only array")
