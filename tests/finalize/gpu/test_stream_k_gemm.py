from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.finalize.gpu.test_persistent_gemm import SMALL, product
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.gemm.test_tensor_core import aligned, dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, finalized, take_tile, with_sms
from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.gpu.synchronization import AWAIT, SIGNAL
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.core.dtypes import F16
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import TensorCoreTile, TileScheduler

STREAM_K = replace(SMALL, consumer_groups=1, scheduler=TileScheduler.STREAM_K)


def _scheduled(
    sizes: tuple[int, int, int],
    blocks: int,
    monkeypatch: pytest.MonkeyPatch,
    tile: TensorCoreTile = STREAM_K,
    order: str = "nn",
) -> tuple[Func, Func]:
    """A product whose steps so many blocks share, before and after scheduling."""
    take_tile(monkeypatch, tile)
    return the_kernel(dense(*sizes, F16, order), with_sms(blocks))


def _plain(scheduled: Func) -> Func:
    return finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)))


def test_blocks_are_as_many_as_have_steps_and_begin_with_nothing_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Three tiles of five steps each: 15 steps, four for each of four blocks.
    plain = _plain(_scheduled((192, 64, 320), 4, monkeypatch)[1])
    reset, product_ = launches(plain)
    assert (str(reset.grid), str(product_.grid)) == ("4", "4")
    (ready,) = reset.touched[1]
    reads, writes = product_.touched
    assert ready in reads & writes  # or they would run at the same time


def test_a_block_gives_once_and_takes_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, _plain(_scheduled((192, 64, 320), 4, monkeypatch)[1]), ())
    calls = [line for line in module.text().splitlines() if "call void @tw.flag" in line]
    assert [line.split("@")[1].split("(")[0] for line in calls] == [SIGNAL, AWAIT]


@pytest.mark.parametrize(
    ("sizes", "blocks", "order", "tile"),
    [
        ((192, 64, 320), 2, "nn", STREAM_K),
        ((192, 64, 320), 4, "nn", STREAM_K),
        ((128, 64, 448), 5, "nt", STREAM_K),
        ((64, 64, 448), 7, "nn", STREAM_K),
        ((320, 64, 128), 3, "nn", STREAM_K),
        ((256, 64, 192), 2, "nn", replace(STREAM_K, block_m=128, warps_m=8)),
    ],
    ids=["more tiles", "fewer tiles", "three parts", "a part a step", "whole ones", "two groups"],
)
def test_emitted_code_by_threads_of_this_machine(
    sizes: tuple[int, int, int],
    blocks: int,
    order: str,
    tile: TensorCoreTile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func, scheduled = _scheduled(sizes, blocks, monkeypatch, tile, order)
    plain = _plain(scheduled)
    arrays = sample(func, {})
    own = {p.name: aligned(int(str(p.shape[0])), p.dtype.numpy) for p in plain.params}
    for name, array in arrays.items():
        own[name][: array.size] = array.reshape(-1)
    for name in own.keys() - arrays.keys():
        own[name].view(np.uint8)[:] = 0xA5  # what others have left
    run_launches(plain, own, {})
    (result,) = plain.outputs
    np.testing.assert_allclose(
        own[result].astype(np.float32), product(sizes, arrays, order), rtol=1e-2, atol=1e-2
    )


@pytest.mark.slow
def test_the_loop_means_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    func, scheduled = _scheduled((128, 64, 192), 3, monkeypatch)
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    for name, found in run(scheduled, arrays, {}).items():
        np.testing.assert_array_equal(found, expected[name])
