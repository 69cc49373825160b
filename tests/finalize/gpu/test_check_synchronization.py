"""Faults planted in finalized kernels, in roles and between threads: the interpreter finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, T4, finalized, take_tile, with_sms
from tests.schedule.builtin.gpu.test_attention import attention
from tilewright.arith.expr import Binary, Const, Expr, const
from tilewright.arith.walk import rewrite
from tilewright.core.dtypes import F16, F32
from tilewright.core.errors import ExecutionError
from tilewright.finalize.gpu.check_synchronization import (
    COPIED,
    check_synchronization,
    tile_facts,
)
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import (
    Await,
    Barrier,
    CpAsyncCommit,
    CpAsyncWait,
    Func,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Seq,
    Signal,
    Stmt,
    Tile,
)
from tilewright.ir.loop.text import print_stmt
from tilewright.ir.loop.walk import map_region, map_stmt, statements_in
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.gpu import GpuTarget

PINGPONG = TensorCoreTile(
    *(64, 64, 4, 1, 2, 1, 0.2),
    wgmma=True,
    mainloop=Mainloop.WARP_SPECIALIZED,
    scheduler=TileScheduler.PERSISTENT,
    consumer_groups=2,
)
STREAM_K = replace(PINGPONG, consumer_groups=1, scheduler=TileScheduler.STREAM_K)
PERSISTENT = replace(PINGPONG, consumer_groups=1)
TMA = TensorCoreTile(64, 64, 4, 1, 3, 1, 0.2, wgmma=True, mainloop=Mainloop.TMA)
WGMMA_CP_ASYNC = replace(TMA, mainloop=Mainloop.CP_ASYNC)
CP_ASYNC = TensorCoreTile(32, 32, 2, 1, 3, 1, 0.2, mainloop=Mainloop.CP_ASYNC)
CODES = ("interp.race", "interp.deadlock", "interp.mbarrier", "interp.in-flight")
SYNCHRONIZING = (
    *(MbarrierWait, MbarrierArrive, Signal, Await),
    *(Barrier, CpAsyncCommit, CpAsyncWait),
)


@cache
def _gemm(tile: TensorCoreTile | None, sizes: tuple[int, int, int], blocks: int) -> Func:
    with pytest.MonkeyPatch.context() as patch:
        if tile is not None:
            take_tile(patch, tile)
        target = with_sms(blocks) if tile is not None else T4
        return _finalized(the_kernel(dense(*sizes, F16, "nn"), target)[1], target)


@cache
def _attention(queries: int, keys: int, size: int, *tile: int) -> Func:
    func = attention(queries, keys, size, F16, tile=tile)
    one = with_sms(1)
    return _finalized(schedule_for_gpu(func, frozenset(), one).func, one)


def _finalized(func: Func, target: GpuTarget = H200) -> Func:
    return finalized(replace(func, annotations=(ALIGNED_PARAMS,)), target)


def _rows(op: str, *shape: int, **attrs: object) -> Func:
    """A kernel whose threads hand one another what they have read."""
    b = GraphBuilder(op)
    x = b.input("x", tensor(F32, *shape))
    graph: Graph = b.graph(b.add(op, x, attrs=make_attrs(op, attrs)))
    return finalized(the_kernel(graph)[1])


# Every stage of a pipeline is used several times, every block has several tiles where it stays.
KERNELS: dict[str, Callable[[], Func]] = {
    "ping-pong": lambda: _gemm(PINGPONG, (640, 64, 320), 1),
    "persistent": lambda: _gemm(PERSISTENT, (192, 64, 320), 1),
    "stream-k": lambda: _gemm(STREAM_K, (320, 64, 448), 4),
    "attention": lambda: _attention(512, 640, 64, 128, 128),
    "split attention": lambda: _attention(300, 600, 64, 128, 64, 2),
    "tma": lambda: _gemm(TMA, (64, 64, 320), 1),
    "wgmma, cp.async": lambda: _gemm(WGMMA_CP_ASYNC, (64, 64, 320), 1),
    "cp.async": lambda: _gemm(CP_ASYNC, (32, 32, 320), 1),
    "attention by wgmma, cp.async": lambda: _attention(64, 200, 64, 64, 64),
    "attention by mma": lambda: _attention(32, 200, 40, 32, 32),
    "split attention by wgmma": lambda: _attention(64, 600, 64, 64, 64, 2),
    "through registers": lambda: _gemm(None, (32, 32, 128), 1),
    "transpose": lambda: _rows("transpose", 40, 70, perm=(1, 0)),
    "column sums": lambda: _rows("reduce_sum", 100, 16, axes=(0,), keepdims=False),
}
# Waits that others imply: before the producer copies the first k-tile of a tile, or its queries, it
# has waited for the last k-tiles of the tile before, which consumers read behind those.
REDUNDANT = {
    name: ["removed: mbarrier_wait a.empty", "removed: mbarrier_wait kt.empty[i64(batch.at."]
    for name in ("attention", "split attention")
}


def _faults(func: Func) -> Iterator[tuple[str, Func]]:
    """Each way in which one statement may be wrong, with the line that it stands in."""
    for s in statements_in(func.body):
        for what, wrong in _wrong(s):
            yield f"{what}: {print_stmt(s).splitlines()[0]}", _with(func, s, wrong)
    yield from _narrow_rings(func)


def _wrong(s: Stmt) -> Iterator[tuple[str, Stmt]]:
    match s:
        case MbarrierWait(_, parity):
            yield "swapped phase", replace(s, parity=1 - parity)
        case MbarrierInit(_, count):
            yield "an arrival too many", replace(s, count=count + 1)
            yield "not initialized", Seq(())
        case CpAsyncWait(pending):
            yield "a group too few", replace(s, pending=pending + 1)
        case Tile() if INTRINSICS[s.intrinsic].tma_box:
            yield "no copy", Seq(())
        case Tile("copy") if INTRINSICS[s.intrinsic].in_flight is not None:
            yield "no wait for a product", Seq(())
    if isinstance(s, SYNCHRONIZING):
        yield "removed", Seq(())


def _narrow_rings(func: Func) -> Iterator[tuple[str, Func]]:
    """The copies to each buffer in a ring of one stage less; the first ones are where they were."""
    for name in dict.fromkeys(s.dst.buffer for s in statements_in(func.body) if _is_copy(s)):

        def narrow(s: Stmt, name: str = name) -> Stmt:
            if isinstance(s, Tile) and _is_copy(s) and s.dst.buffer == name:
                return replace(s, dst=map_region(s.dst, _in_fewer_stages))
            return map_stmt(s, narrow)

        yield f"one stage too few: {name}", replace(func, body=narrow(func.body))


def _is_copy(s: Stmt) -> bool:
    """Whether a statement copies to a stage of a pipeline."""
    asynchronous = isinstance(s, Tile) and (
        s.intrinsic in COPIED or INTRINSICS[s.intrinsic].tma_box is not None
    )
    return asynchronous and print_stmt(s) != print_stmt(
        replace(s, dst=map_region(s.dst, _in_fewer_stages))
    )


def _in_fewer_stages(e: Expr) -> Expr:
    def fewer(x: Expr) -> Expr | None:
        if isinstance(x, Binary) and x.op == "mod" and isinstance(x.b, Const) and x.b.value <= 3:
            return x.a % (x.b.value - 1) if x.b.value > 2 else const(0)
        return None

    return rewrite(e, fewer)


def _with(func: Func, old: Stmt, new: Stmt) -> Func:
    def go(s: Stmt) -> Stmt:
        return new if s is old else map_stmt(s, go)

    return replace(func, body=go(func.body))


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_synchronize(name: str) -> None:
    check_synchronization(KERNELS[name]())


def test_blocks_synchronize() -> None:
    check_synchronization(_gemm(PINGPONG, (320, 64, 64), 2))
    check_synchronization(_gemm(STREAM_K, (64, 64, 448), 7))


@pytest.mark.parametrize("name", KERNELS)
def test_every_planted_fault_is_found(name: str) -> None:
    missed = [what for what, wrong in _faults(KERNELS[name]()) if _found(wrong) not in CODES]
    known = REDUNDANT.get(name, [])
    assert len(missed) == len(known), missed
    assert all(what.startswith(start) for what, start in zip(missed, known, strict=True))


def _found(wrong: Func) -> str:
    """The code of the error, none if there is none."""
    try:
        check_synchronization(wrong)
    except ExecutionError as error:
        return error.code
    return ""


def test_there_are_faults_of_every_kind() -> None:
    """More than 150 of them, several in each kernel with a pipeline."""
    planted = {name: [what for what, _ in _faults(make())] for name, make in KERNELS.items()}
    every = [what.split(":")[0] for faults in planted.values() for what in faults]
    assert len(every) > 150
    assert set(every) == {
        *("removed", "swapped phase", "an arrival too many", "not initialized"),
        *("a group too few", "no copy", "no wait for a product", "one stage too few"),
    }
    few = {name for name, faults in planted.items() if len(faults) < 5}
    assert few == {"through registers", "transpose", "column sums"}


def test_operands_in_panels_lie_in_a_row() -> None:
    facts = tile_facts("wgmma_f16_64_nn")
    assert facts.shapes == ((1, 16 * 64), (1, 64 * 64), (16, 64))
    assert facts.in_flight == 0
    assert tile_facts("tma_load_f16_64x64").in_flight is None
