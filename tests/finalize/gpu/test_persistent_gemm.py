from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.gemm.test_tensor_core import aligned, assembled, dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, finalized, take_tile, with_sms
from tilewright.codegen.gpu.launches import Launch, launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.core.dtypes import F16
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import Func
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    PERSISTENT_TILES,
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)

ONE = with_sms(1)
SMALL = TensorCoreTile(
    *(64, 64, 4, 1, 2, 1, 0.2),
    wgmma=True,
    mainloop=Mainloop.WARP_SPECIALIZED,
    scheduler=TileScheduler.PERSISTENT,
    consumer_groups=2,
)


def _scheduled(
    sizes: tuple[int, int, int],
    tile: TensorCoreTile,
    monkeypatch: pytest.MonkeyPatch,
    order: str = "nn",
) -> tuple[Func, Func]:
    """A product with such a tile, before and after scheduling."""
    take_tile(monkeypatch, tile)
    return the_kernel(dense(*sizes, F16, order), ONE)


def _emitted(scheduled: Func) -> tuple[Launch, str]:
    plain = finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)))
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, plain, ())
    (launch,) = launches(plain)
    return launch, module.text()


def test_groups_have_turns_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    launch, text = _emitted(_scheduled((320, 64, 128), SMALL, monkeypatch)[1])
    assert str(launch.grid) == "1"
    assert launch.threads == 2 * 128 + 128
    body = text[text.index("ptx_kernel") :]
    calls = [line.split("@tw.")[1].split("(")[0] for line in body.splitlines() if "@tw.w" in line]
    assert calls == ["wgmma_zero_64", "wgmma_f16_64_nn_async", "wgmma_wait_64"]


def test_one_group_does_not_wait_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(groups: int) -> int:
        tile = replace(SMALL, warps_m=8 // groups, block_m=128 // groups, consumer_groups=groups)
        _, text = _emitted(_scheduled((256, 64, 64), tile, monkeypatch)[1])
        return text.count("mbarrier.try_wait")

    assert (waits(1), waits(2)) == (2, 3)


@pytest.mark.parametrize(
    ("sizes", "order", "tile"),
    [
        # Of the second group's first step the ring is two turns ahead.
        ((320, 64, 320), "nn", SMALL),
        ((192, 64, 64), "nt", replace(SMALL, stages=4)),
        ((384, 64, 128), "nn", replace(SMALL, block_m=128, m_repeats=2)),
        ((256, 64, 192), "nn", replace(SMALL, block_m=128, warps_m=8, consumer_groups=1)),
        # Zeros where tiles reach beyond matrices, and nothing stored there.
        ((200, 72, 200), "nn", SMALL),
        ((136, 41, 72), "nt", SMALL),
    ],
    ids=["turns", "few steps", "rows twice", "one group", "edges", "edges of columns"],
)
def test_emitted_code_by_threads_of_this_machine(
    sizes: tuple[int, int, int],
    order: str,
    tile: TensorCoreTile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func, scheduled = _scheduled(sizes, tile, monkeypatch, order)
    plain = finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)))
    arrays = sample(func, {})
    own = {p.name: aligned(int(str(p.shape[0])), p.dtype.numpy) for p in plain.params}
    for name, array in arrays.items():
        own[name][: array.size] = array.reshape(-1)
    run_launches(plain, own, {})
    (result,) = plain.outputs
    np.testing.assert_allclose(
        own[result].astype(np.float32), product(sizes, arrays, order), rtol=1e-2, atol=1e-2
    )


def product(sizes: tuple[int, int, int], arrays: dict[str, np.ndarray], order: str) -> np.ndarray:
    """What `dense` means."""
    m, n, k = sizes
    shapes = {"x": (m, k), "w": (n, k) if order[1] == "t" else (k, n), "bias": (n,)}
    given = {
        name: next(a for a in arrays.values() if a.shape == shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    w = given["w"].T if order[1] == "t" else given["w"]
    return np.maximum((given["x"] @ w).astype(np.float16) + given["bias"], 0).reshape(-1)


def test_the_loop_means_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = replace(SMALL, block_m=128, m_repeats=2)
    func, scheduled = _scheduled((128, 64, 64), tile, monkeypatch)
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    for name, found in run(scheduled, arrays, {}).items():
        np.testing.assert_array_equal(found, expected[name])


@pytest.mark.ptxas
@pytest.mark.parametrize("tile", PERSISTENT_TILES, ids=str)
def test_kernels_assemble_without_spills(
    tile: TensorCoreTile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, scheduled = _scheduled((768, 6 * tile.block_n, 768), tile, monkeypatch, "nt")
    assembled(scheduled, H200, tmp_path)
