"""The parts of a warp-specialized kernel: prologue, mainloop and epilogue.

    for b in grid(64) {
      copy Q                              buffers filled once a tile
      ...                                 prologue
      for k in serial(n) {pipeline_stages=2, warp_specialized=1} {
        copy K; copy V                    buffers filled for each k-tile
        S = Q * K                         qk
        formulas of S                     softmax
        formulas of O and P               rescale
        O += P * V                        pv
      }
      ...                                 epilogue
    }

The mainloop of a GEMM has one product, and one set of buffers with both of its operands.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.select_stage import is_tma_load
from tilewright.finalize.gpu.tma_pipeline import TmaPipeline
from tilewright.ir.loop.annotations import PIPELINE_STAGES, WARP_SPECIALIZED
from tilewright.ir.loop.nodes import Alloc, Barrier, For, Seq, Stmt, Tile
from tilewright.ir.loop.walk import loops, statements_in, touched_buffers
from tilewright.schedule.intrin.table import INTRINSICS


@node
class PipelineBuffers:
    """Buffers that share their mbarriers, and the TMA copies that fill one stage of them."""

    buffers: tuple[str, ...]
    copies: tuple[Tile, ...]


@node
class GemmMainloop:
    """A block of threads whose mainloop has one product."""

    k_loop: For
    operands: PipelineBuffers
    prologue: tuple[Stmt, ...]
    product: Stmt
    epilogue: tuple[Stmt, ...]


@node
class AttentionMainloop:
    """A block of threads whose mainloop has the two products of attention.

    `pipelines` are K, V, and then the operands that are loaded once for all k-tiles. `softmax` runs
    beside the second product of the k-tile before; `rescale` touches its operands and waits for it.
    """

    k_loop: For
    pipelines: tuple[PipelineBuffers, ...]
    prologue: tuple[Stmt, ...]
    qk: Stmt
    softmax: tuple[Stmt, ...]
    rescale: tuple[Stmt, ...]
    pv: Stmt
    epilogue: tuple[Stmt, ...]


def mainloop_of(stmt: Stmt) -> For | None:
    """The warp-specialized mainloop in a statement, if it has one."""
    return next((s for s in loops(stmt) if WARP_SPECIALIZED.is_on(s)), None)


def is_gemm(body: Stmt) -> bool:
    """Whether the mainloop in the body of a grid loop has one product."""
    k_loop = mainloop_of(body)
    assert k_loop is not None
    return sum(map(bool, map(products, _flat(k_loop.body)))) == 1


def gemm_mainloop(body: Stmt) -> GemmMainloop:
    """The parts of the body of a grid loop whose mainloop has one product."""
    k_loop = mainloop_of(body)
    assert k_loop is not None
    rest, steps = _flat(body), _flat(k_loop.body)
    copies = tuple(s for s in steps if isinstance(s, Tile) and copied(s))
    (product,) = (s for s in steps if products(s))
    if len(steps) != len(copies) + 1:
        message = f"loop {k_loop.name} computes more than its product"
        raise CodegenError("gpu.warp-specialize", message)
    at = next(n for n, s in enumerate(rest) if s is k_loop)
    operands = PipelineBuffers(tuple(dict.fromkeys(map(copied, copies))), copies)
    return GemmMainloop(k_loop, operands, tuple(rest[:at]), product, tuple(rest[at + 1 :]))


def attention_mainloop(body: Stmt) -> AttentionMainloop:
    """The parts of the body of a grid loop whose mainloop has two."""
    k_loop = mainloop_of(body)
    assert k_loop is not None
    rest, steps = _flat(body), _flat(k_loop.body)
    found = [s for s in steps if products(s)]
    if len(found) != 2:
        raise CodegenError("gpu.warp-specialize", f"loop {k_loop.name} has not two products")
    qk, pv = found
    names = [_operand(p, steps) for p in found]
    names += sorted({copied(s) for s in rest} - {""})
    tiles = [s for s in (*steps, *rest) if isinstance(s, Tile)]
    pipelines = tuple(
        PipelineBuffers((name,), tuple(s for s in tiles if copied(s) == name)) for name in names
    )
    own = [s for s in rest if not copied(s)]
    at = next(n for n, s in enumerate(own) if s is k_loop)
    prologue, epilogue = tuple(own[:at]), tuple(own[at + 1 :])
    between = steps[steps.index(qk) + 1 : steps.index(pv)]
    softmax, rescale = _divide(k_loop, between, _touched((pv,)) - {*names})
    return AttentionMainloop(k_loop, pipelines, prologue, qk, softmax, rescale, pv, epilogue)


def pipeline_of(grid: For, k_loop: For, operands: PipelineBuffers) -> TmaPipeline:
    """The ring of stages that some operands go through."""
    allocs = (s.buffer for s in statements_in(grid) if isinstance(s, Alloc))
    shared = {b.name: b for b in allocs}
    buffers = tuple(shared[name] for name in operands.buffers)
    return TmaPipeline(buffers, operands.copies, PIPELINE_STAGES.of(k_loop))


def _divide(
    k_loop: For, between: list[Stmt], in_flight: set[str]
) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """The statements that touch no operand of the product in flight, and the others."""
    softmax = tuple(s for s in between if not in_flight & _touched((s,)))
    rescale = tuple(s for s in between if in_flight & _touched((s,)))
    written = {name for s in rescale for name in touched_buffers(s)[1]}
    if written & _touched(softmax):
        message = f"the softmax of {k_loop.name} depends on the product in flight"
        raise CodegenError("gpu.warp-specialize", message)
    return softmax, rescale


def _touched(stmts: Iterable[Stmt]) -> set[str]:
    return set[str]().union(*(names for s in stmts for names in touched_buffers(s)))


def _operand(product: Stmt, steps: list[Stmt]) -> str:
    """The operand of a product that is copied for each k-tile."""
    filled = {copied(s) for s in steps}
    found = {r.buffer for t in products(product) for r in t.srcs if r.buffer in filled}
    if len(found) != 1:
        raise CodegenError("gpu.warp-specialize", "a product reads not one operand that is copied")
    return found.pop()


def _flat(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, without allocations around them, and without barriers."""
    while isinstance(stmt, Alloc):
        stmt = stmt.body
    if isinstance(stmt, Seq):
        return [x for s in stmt.stmts for x in _flat(s)]
    return [] if isinstance(stmt, Barrier) else [stmt]


def products(stmt: Stmt) -> list[Tile]:
    """The asynchronous mma instructions in a statement."""
    tiles = (s for s in statements_in(stmt) if isinstance(s, Tile) and s.srcs)
    return [t for t in tiles if INTRINSICS[t.intrinsic].wait]


def copied(stmt: Stmt) -> str:
    """The buffer that a TMA copy fills, "" for any other statement."""
    return stmt.dst.buffer if isinstance(stmt, Tile) and is_tma_load(stmt) else ""
