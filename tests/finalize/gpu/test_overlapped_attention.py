from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.codegen.gpu.ptxas import assemble
from tests.schedule.builtin.gpu.gemm.test_tensor_core import on_threads
from tests.schedule.builtin.gpu.scheduled import H200, with_sms
from tests.schedule.builtin.gpu.test_attention import attention
from tilewright.arith.expr import const
from tilewright.codegen.gpu.launches import Launch, launches, shared_offsets
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import BF16, F16, DType
from tilewright.finalize.gpu.check_synchronization import check_synchronization
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu

TILE, WIDE_TILE = (128, 128), (128, 64)


def emitted(
    size: int, length: int = 1024, mask: DType | None = None, **attrs: object
) -> tuple[Launch, str]:
    """The launch of attention, and the text of its module."""
    tile = TILE if size <= TILE[1] else WIDE_TILE
    func = attention(length, length, size, heads=40, mask=mask, tile=tile, **attrs)
    scheduled = schedule_for_gpu(func, frozenset(), H200).func
    plain = finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), H200)
    (launch,) = launches(plain)
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, plain, ())
    return launch, module.text()


def test_products_are_begun_and_waited_for_behind_formulas() -> None:
    _, text = emitted(128)
    body = text[text.index("ptx_kernel") :]
    calls = [line.split("@tw.")[1].split("(")[0] for line in body.splitlines() if "@tw.w" in line]
    first = ["wgmma_bf16_128_nt_issue_zero", "wgmma_bf16_128_nt_issue"]
    second = ["wgmma_bf16_128_rs_n_issue"] * 2
    ends = ["wgmma_wait_128_2", "wgmma_wait_128"]
    assert calls == [*first, ends[1], *first, *second, *ends, *second, ends[1]]


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("size", "attrs"),
    [
        pytest.param(128, {}, marks=pytest.mark.slow),
        (128, {"window_right": 0}),
        pytest.param(128, {"mask": BF16}, marks=pytest.mark.slow),
        (64, {}),
        pytest.param(72, {"window_right": 0}, marks=pytest.mark.slow),
        pytest.param(160, {"window_right": 0}, marks=pytest.mark.slow),
        pytest.param(192, {"mask": BF16}, marks=pytest.mark.slow),
        (256, {}),
    ],
)
@pytest.mark.parametrize("length", [1024, 1003])
def test_kernels_assemble_without_spills(
    size: int, length: int, attrs: dict[str, object], tmp_path: Path
) -> None:
    launch, text = emitted(size, length, **attrs)  # type: ignore[arg-type]
    report = assemble(compile_object(text, H200).decode(), tmp_path, H200.cpu)[launch.name]
    assert (report.spilled, report.stack) == (0, 0)
    assert launch.shared <= H200.max_shared_per_block


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queries", "keys", "size", "tile"),
    [
        (256, 256, 64, TILE),
        (130, 200, 72, TILE),
        (129, 70, 8, TILE),
        (70, 300, 40, (128, 64, 2)),
    ],
    ids=["whole tiles", "past all ends", "few columns", "parts"],
)
def test_emitted_code_by_threads_of_this_machine(
    queries: int, keys: int, size: int, tile: tuple[int, ...]
) -> None:
    """One block goes through all tiles."""
    band = {"window_right": 0, "offset": const(40)}
    func = attention(queries, keys, size, F16, heads=2, tile=tile, **band)
    one = with_sms(1)
    on_threads(func, schedule_for_gpu(func, frozenset(), one).func, {})


def test_blocks_that_take_turns_wait_for_no_other() -> None:
    """Of three blocks, with five heads whose tiles see ever more keys."""
    func = attention(300, 300, 64, F16, heads=5, window_right=0, tile=TILE)
    three = with_sms(3)
    scheduled = schedule_for_gpu(func, frozenset(), three).func
    check_synchronization(finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), three))


def test_wide_queries_have_one_stage() -> None:
    launch, _ = emitted(256)
    sizes = {name: size for name, (_, size) in shared_offsets(launch.body).items()}
    assert sizes["a"] == 128 * 256 * 2
    assert sizes["kt"] == sizes["vt"] == 2 * 64 * 256 * 2
