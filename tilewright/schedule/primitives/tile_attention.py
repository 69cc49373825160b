"""`tile_attention(rows, keys, parts)`: attention in the tiles of scores of blocks of threads.

    func @fused_attention(...) {attention="scale=0.125"} {
      for batch, blocks of rows { for blocks of keys { online softmax } }
    }
      →
    func @fused_attention(...) {
      for batch, tiles of rows { for tiles of keys { the same, with rows distributed over lanes } }
    }

The loops are written anew from what the function says that it computes, as
`ops/attention/tiled_loops.py` spells them for tensor cores: weights are rounded to the type of the
values. With several parts (`ops/attention/split_kv.py`) a second nest puts them together.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Func
from tilewright.ops.attention.split_kv import parts_func
from tilewright.ops.attention.stated_problem import problem_of, without_statement
from tilewright.ops.attention.tiled_loops import WIDTHS, tiled_func
from tilewright.schedule.diagnostics import refuse


def tile_attention(func: Func, rows: int, keys: int, parts: int = 1) -> Func:
    """Have attention in tiles of rows and keys for tensor cores, the keys in so many parts."""
    problem = problem_of(func)
    if problem is None:
        message = "the function does not say that it computes attention"
        raise refuse(func, "tile-attention.problem", message)
    if min(rows, keys, parts) < 1 or rows % 16 or keys % 16:
        message = f"a tile of {rows} rows and {keys} keys in {parts} parts is none of whole steps"
        raise refuse(func, "tile-attention.size", message, help="steps are of 16")
    if not all(0 < (as_int(size) or 0) <= WIDTHS[-1] for size in (problem.q[-1], problem.v[-1])):
        message = f"heads of {problem.q[-1]} and {problem.v[-1]} columns have no tile"
        raise refuse(func, "tile-attention.heads", message, help=f"up to {WIDTHS[-1]} have one")
    tiled = replace(problem, tile=(rows, keys, parts) if parts > 1 else (rows, keys))
    made = (parts_func if parts > 1 else tiled_func)(tiled)
    left = without_statement(func)
    return replace(left, body=made.body)
