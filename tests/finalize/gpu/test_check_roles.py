"""Faults planted in the roles of finalized kernels: the interpreter finds each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import finalized, take_tile, with_sms
from tests.schedule.builtin.gpu.test_attention import attention
from tilewright.arith.expr import Binary, Expr, const
from tilewright.arith.walk import rewrite
from tilewright.core.dtypes import F16
from tilewright.core.errors import ExecutionError
from tilewright.finalize.gpu.check_roles import check_roles, tile_facts
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import (
    Await,
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
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.intrin.table import INTRINSICS

PINGPONG = TensorCoreTile(
    *(64, 64, 4, 1, 2, 1, 0.2),
    wgmma=True,
    mainloop=Mainloop.WARP_SPECIALIZED,
    scheduler=TileScheduler.PERSISTENT,
    consumer_groups=2,
)
STREAM_K = replace(PINGPONG, consumer_groups=1, scheduler=TileScheduler.STREAM_K)
# Waits that others imply: before the producer copies the first k-tile of a tile, or its queries, it
# has waited for the last k-tiles of the tile before, which consumers read behind those.
REDUNDANT = [
    "removed: mbarrier_wait a.empty",
    "removed: mbarrier_wait kt.empty[i64(batch.at.n0_n1_rows.produced[0] + u32(0))",
]
CODES = ("interp.race", "interp.deadlock", "interp.mbarrier", "interp.in-flight")
SYNCHRONIZING = (MbarrierWait, MbarrierArrive, Signal, Await)


@cache
def _gemm(tile: TensorCoreTile, sizes: tuple[int, int, int], blocks: int) -> Func:
    with pytest.MonkeyPatch.context() as patch:
        take_tile(patch, tile)
        return _finalized(the_kernel(dense(*sizes, F16, "nn"), with_sms(blocks))[1])


@cache
def _attention() -> Func:
    """Four tiles of five k-tiles for one block, so that every stage is used several times."""
    func = attention(512, 640, 64, F16, tile=(128, 128))
    return _finalized(schedule_for_gpu(func, frozenset(), with_sms(1)).func)


def _finalized(func: Func) -> Func:
    return finalized(replace(func, annotations=(ALIGNED_PARAMS,)))


def _kernels() -> Iterator[Func]:
    yield _gemm(PINGPONG, (640, 64, 320), 1)
    yield _gemm(STREAM_K, (320, 64, 448), 4)
    yield _attention()


def _faults(func: Func) -> Iterator[tuple[str, Func]]:
    """Each way in which one statement may be wrong, with the line that it stands in."""
    for s in statements_in(func.body):
        for what, wrong in _wrong(s):
            yield f"{what}: {print_stmt(s).splitlines()[0]}", _with(func, s, wrong)


def _wrong(s: Stmt) -> Iterator[tuple[str, Stmt]]:
    match s:
        case MbarrierWait(_, parity):
            yield "swapped phase", replace(s, parity=1 - parity)
        case MbarrierInit(_, count):
            yield "an arrival too many", replace(s, count=count + 1)
        case Tile() if INTRINSICS[s.intrinsic].tma_box:
            yield "no copy", Seq(())
            yield "one stage too few", replace(s, dst=map_region(s.dst, _in_one_stage))
        case Tile("copy") if INTRINSICS[s.intrinsic].in_flight is not None:
            yield "no wait for a product", Seq(())
    if isinstance(s, SYNCHRONIZING):
        yield "removed", Seq(())


def _in_one_stage(e: Expr) -> Expr:
    def first(x: Expr) -> Expr | None:
        stage = isinstance(x, Binary) and x.op == "mod" and x.b is const(2)
        return const(0) if stage else None

    return rewrite(e, first)


def _with(func: Func, old: Stmt, new: Stmt) -> Func:
    def go(s: Stmt) -> Stmt:
        return new if s is old else map_stmt(s, go)

    return replace(func, body=go(func.body))


def test_kernels_synchronize() -> None:
    for func in _kernels():
        check_roles(func)
    check_roles(_gemm(PINGPONG, (320, 64, 64), 2))
    check_roles(_gemm(STREAM_K, (64, 64, 448), 7))


def test_every_planted_fault_is_found() -> None:
    found, missed = list[str](), list[str]()
    for func in _kernels():
        for what, wrong in _faults(func):
            try:
                check_roles(wrong)
                missed.append(what)
            except ExecutionError as error:
                found.append(error.code)
    assert (len(found), len(missed)) == (73, len(REDUNDANT))
    assert all(what.startswith(known) for what, known in zip(missed, REDUNDANT, strict=True))
    assert set(found) <= set(CODES)


def test_operands_in_panels_lie_in_a_row() -> None:
    facts = tile_facts("wgmma_f16_64_nn")
    assert facts.shapes == ((1, 16 * 64), (1, 64 * 64), (16, 64))
    assert facts.in_flight == 0
    assert tile_facts("tma_load_f16_64x64").in_flight is None
