"""`tile_attention(rows, keys, parts)`: attention in the tiles of scores of blocks of threads.

    func @fused_attention(...) {attention="scale=0.125"} {
      for batch, blocks of rows { for blocks of keys { online softmax } }
    }
      →
    func @fused_attention(...) {
      for batch, tiles of rows { for tiles of keys { the same, with rows distributed over lanes } }
    }

The loops are written anew from what the function says that it computes: in 16 bits as
`ops/attention/tiled_loops.py` spells them for tensor cores, weights rounded to the type of the
values, in f32 as `ops/attention/simt_loops.py` does for threads. With several parts
(`ops/attention/split_kv.py`) a second nest puts them together.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.core.dtypes import BF16, F16
from tilewright.ir.loop.nodes import Func
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.simt_loops import GROUP, MAX_COLUMNS, VECTOR, simt_func
from tilewright.ops.attention.split_kv import parts_func
from tilewright.ops.attention.stated_problem import problem_of, without_statement
from tilewright.ops.attention.tiled_loops import WIDTHS, tiled_func
from tilewright.schedule.diagnostics import refuse

# The rows of a warp, and the keys of an instruction.
STEP = 16


def _made(problem: Problem) -> Func:
    if problem.out.dtype not in (BF16, F16):
        return simt_func(problem)
    return (parts_func if problem.parts > 1 else tiled_func)(problem)


def tile_attention(func: Func, rows: int, keys: int, parts: int = 1) -> Func:
    """Have attention in tiles of rows and keys, the keys in so many parts."""
    problem = problem_of(func)
    if problem is None:
        message = "the function does not say that it computes attention"
        raise refuse(func, "tile-attention.problem", message)
    narrow = problem.out.dtype in (BF16, F16)
    least, columns = (STEP, WIDTHS[-1]) if narrow else (GROUP, MAX_COLUMNS)
    whole = rows % STEP == keys % least == 0 and (narrow or rows & (rows - 1) == 0)
    if min(rows, keys, parts) < 1 or not whole or (parts > 1 and not narrow):
        message = f"a tile of {rows} rows and {keys} keys in {parts} parts is none of whole steps"
        raise refuse(
            func,
            "tile-attention.size",
            message,
            help=f"rows are in steps of {STEP}, keys of {least}",
        )
    sizes = [as_int(size) or 0 for size in (problem.q[-1], problem.v[-1])]
    if not all(0 < n <= columns and (narrow or n % VECTOR == 0) for n in sizes):
        message = f"heads of {problem.q[-1]} and {problem.v[-1]} columns have no tile"
        raise refuse(
            func, "tile-attention.heads", message, help=f"whole vectors up to {columns} have one"
        )
    tiled = replace(problem, tile=(rows, keys, parts) if parts > 1 else (rows, keys))
    made = _made(tiled)
    left = without_statement(func)
    return replace(left, body=made.body)
