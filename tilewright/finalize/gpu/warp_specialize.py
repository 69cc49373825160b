"""Warp specialization: a loop over output tiles becomes a persistent kernel with roles.

    for b in grid(320) {persistent=132} {      for block in grid(132) {
      for k in serial(n)                         mbarrier_init ...
          {pipeline_stages=2,                    barrier
           warp_specialized=1} {                 roles {
        copy k-tile k to K                         consumer warps(8) registers(240) {
        S = A * K                           →        for b = block, block + 132, ... {
      }                                                wait until K is full; S = A * K; release K
    }                                              } }
                                                   producer warps(4) registers(24) {
                                                     for b = block, block + 132, ... {
                                                       wait until K is empty; copy a k-tile
                                                   } }
                                                 }
                                               }

While the epilogue of one tile runs, the producer loads the next one. The producers need few
registers and hand their own to the consumers (`setmaxnreg`). What each role does is in
`persistent_gemm.py`, `stream_k_gemm.py` and `overlapped_attention.py`.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.finalize.gpu.mainloop import is_gemm, mainloop_of
from tilewright.finalize.gpu.overlapped_attention import overlapped_attention
from tilewright.finalize.gpu.persistent_gemm import persistent_gemm
from tilewright.finalize.gpu.stream_k import stream_k_of
from tilewright.finalize.gpu.stream_k_gemm import stream_k_gemm
from tilewright.ir.loop.nodes import For, Func, Stmt
from tilewright.ir.loop.thread_mapping import GRID
from tilewright.ir.loop.walk import map_stmt
from tilewright.target.gpu import GpuTarget


def warp_specialize(func: Func, target: GpuTarget) -> Func:
    """`func` with roles in its grid loops whose mainloop is warp-specialized."""

    def rewritten(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or stmt.kind != GRID:
            return map_stmt(stmt, rewritten)
        return stmt if mainloop_of(stmt) is None else _specialized(stmt, target)

    return replace(func, body=rewritten(func.body))


def _specialized(grid: For, target: GpuTarget) -> For:
    plan = stream_k_of(grid)
    if plan is not None:
        return stream_k_gemm(grid, plan, target)
    return (persistent_gemm if is_gemm(grid.body) else overlapped_attention)(grid, target)
