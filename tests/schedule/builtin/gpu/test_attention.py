from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.ptxas import assemble
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.gemm.test_tensor_core import A100, on_threads, tiles
from tests.schedule.builtin.gpu.scheduled import H200, T4
from tests.schedule.builtin.scheduled import assert_replays
from tilewright.arith.expr import Var
from tilewright.codegen.gpu.launches import launches, shared_offsets
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import BF16, BOOL, F16, F32, DType
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.attention.flash_loops import flash_attention_func
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.split_kv import parts_func
from tilewright.ops.attention.tiled_loops import tiled_func
from tilewright.schedule.builtin.gpu.attention import tiled_tasks
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.target.gpu import GpuTarget

HEADS = (0, 2, 1, 3)


def attention(
    queries: object,
    keys: object,
    size: int = 16,
    dtype: DType = BF16,
    heads: int = 1,
    mask: DType | None = None,
    mask_rows: object = None,
    tile: tuple[int, ...] = (16, 32),
    **attrs: object,
) -> Func:
    """Attention with heads in the middle; those of keys are shared."""
    given = {"scale": 0.25, **attrs}
    orders = dict.fromkeys(("q_perm", "k_perm", "v_perm", "y_perm"), HEADS)
    ins = [tensor(dtype, 1, queries, heads, size)]
    ins += [tensor(dtype, 1, keys, 1, size) for _ in range(2)]
    ins += [] if mask is None else [tensor(mask, mask_rows or queries, keys)]
    out = tensor(dtype, 1, queries, heads, size)
    problem = Problem(FusedAttentionAttrs(**{**orders, **given}), tuple(ins), out, tile)
    return (parts_func if problem.parts > 1 else tiled_func)(problem)


def _scheduled(func: Func) -> Func:
    result = schedule_for_gpu(func, frozenset(), H200)
    assert result.rule == "gpu.attention"
    verify_func(result.func)
    assert_replays(func, result)
    return result.func


def test_the_meaning_is_kept() -> None:
    func = attention(10, 40, mask=F32, window_right=0, fully_masked="zero")
    scheduled = _scheduled(func)
    products = [t.intrinsic for t in tiles(scheduled) if t.srcs]
    assert products == ["mma_bf16_16x32_rt", "mma_bf16_16x32_rn"]
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    for name, found in run(scheduled, arrays, {}).items():
        np.testing.assert_allclose(
            found.astype(np.float32), expected[name].astype(np.float32), rtol=2e-2, atol=1e-2
        )


@pytest.mark.parametrize(
    ("func", "sizes"),
    [
        pytest.param(attention(64, 100, 64, F16, tile=(64, 64)), {}, marks=pytest.mark.slow),
        pytest.param(
            attention(20, 40, 24, F16, heads=2, window_right=0), {}, marks=pytest.mark.slow
        ),
        pytest.param(
            attention(10, 72, 128, F16, window_left=60, window_right=60, tile=(64, 64)),
            {},
            marks=pytest.mark.slow,
        ),
        pytest.param(attention(9, 33, dtype=F16, mask=BOOL), {}, marks=pytest.mark.slow),
        (attention(9, 20, 96, dtype=F16, window_right=0), {}),
        (attention(9, 40, 200, F16, mask=F32, tile=(16, 32)), {}),
        pytest.param(attention(40, 70, 160, F16, tile=(64, 64)), {}, marks=pytest.mark.slow),
        pytest.param(
            attention(20, 40, 24, F16, heads=2, mask=F32, mask_rows=1), {}, marks=pytest.mark.slow
        ),
        pytest.param(attention(Var("I"), Var("J")), {"I": 18, "J": 7}, marks=pytest.mark.slow),
        pytest.param(
            attention(3, 150, 24, F16, heads=2, mask=F32, tile=(16, 32, 2)),
            {},
            marks=pytest.mark.slow,
        ),
        pytest.param(attention(3, Var("J"), tile=(16, 32, 3)), {"J": 70}, marks=pytest.mark.slow),
    ],
    ids=[
        "keys past the end",
        "causal",
        "long rows, band",
        "mask of bools",
        "rows filled up",
        "wide heads",
        "wide heads by wgmma",
        "mask of keys",
        "unknown lengths",
        "parts",
        "unknown parts",
    ],
)
def test_emitted_code_by_threads_of_this_machine(func: Func, sizes: dict[str, int]) -> None:
    on_threads(func, _scheduled(func), sizes)


@pytest.mark.parametrize(
    "func",
    [
        attention(9, 40, 64, F16, window_right=0, tile=(16, 16)),
        pytest.param(attention(40, 70, 64, F16, tile=(32, 64)), marks=pytest.mark.slow),
        pytest.param(attention(3, 150, 24, F16, tile=(16, 32, 2)), marks=pytest.mark.slow),
    ],
    ids=["copies in registers", "copies as they come", "parts"],
)
def test_emitted_code_of_shorter_instructions(func: Func) -> None:
    scheduled = schedule_for_gpu(func, frozenset(), T4).func
    products = [t.intrinsic for t in tiles(scheduled) if t.intrinsic.startswith("mma_f16")]
    assert len(products) == 2
    assert all("_k8_" in name for name in products)
    on_threads(func, scheduled, {}, target=T4)


@pytest.mark.parametrize(
    ("func", "target", "kind"),
    [
        (attention(64, 64, 64, tile=(64, 64)), H200, "wgmma"),
        (attention(64, 128, 64, tile=(64, 128)), H200, "wgmma"),
        (attention(64, 128, 128, tile=(64, 128)), H200, "wgmma"),
        (attention(64, 64, 32, tile=(64, 64)), H200, "mma"),
        (attention(64, 64, 64, tile=(32, 64)), H200, "mma"),
        (attention(64, 64, 64, tile=(64, 64)), A100, "mma"),
    ],
)
def test_warpgroups_multiply_where_they_can(func: Func, target: GpuTarget, kind: str) -> None:
    scheduled = schedule_for_gpu(func, frozenset(), target).func
    assert {t.intrinsic.split("_")[0] for t in tiles(scheduled) if t.srcs} == {kind, "packed"}


@pytest.mark.parametrize(
    ("func", "queries"),
    [
        pytest.param(attention(64, 128, 64, tile=(64, 64)), "rs", marks=pytest.mark.slow),
        (attention(64, 100, 64, tile=(64, 64)), "rs_copy"),
        pytest.param(attention(64, 100, 64, tile=(64, 128)), "rs", marks=pytest.mark.slow),
    ],
    ids=["all keys", "keys past the end", "unlike fragments"],
)
def test_queries_are_copied_where_iterations_differ(func: Func, queries: str) -> None:
    scores, values, results = (t.intrinsic for t in tiles(_scheduled(func)) if t.srcs)
    assert scores.endswith(f"_{queries}_t")
    assert values == "wgmma_bf16_64_rs_n"
    assert results == "packed_transpose_bf16_16x64"


def test_a_mainloop_of_one_iteration_has_one_stage() -> None:
    func = attention(8, 252, 64, window_right=0, tile=(32, 64))
    (launch,) = launches(
        finalize_gpu(replace(_scheduled(func), annotations=(ALIGNED_PARAMS,)), H200)
    )
    assert sum(size for _, size in shared_offsets(launch.body).values()) <= 40 * 1024


def test_only_attention_in_lanes_has_the_rule() -> None:
    ins = tuple(tensor(F32, 2, 64, 8) for _ in range(3))
    assert tiled_tasks(flash_attention_func(Problem(FusedAttentionAttrs(), ins, ins[0]))) is None
    tasks = tiled_tasks(attention(20, 40))
    assert tasks is not None
    assert tasks.name == "at.rows"


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("size", "tile", "attrs"),
    [
        pytest.param(64, (64, 64), {}, marks=pytest.mark.slow),
        pytest.param(128, (128, 64), {}, marks=pytest.mark.slow),
        (128, (64, 64), {"window_right": 0}),
        pytest.param(192, (64, 64), {}, marks=pytest.mark.slow),
        pytest.param(256, (64, 32), {}, marks=pytest.mark.slow),
        pytest.param(32, (32, 64), {"mask": BF16}, marks=pytest.mark.slow),
        pytest.param(128, (16, 64, 4), {}, marks=pytest.mark.slow),
    ],
)
def test_kernels_assemble_without_spills(
    size: int, tile: tuple[int, ...], attrs: dict[str, object], tmp_path: Path
) -> None:
    scheduled = _scheduled(attention(1024, 1024, size, heads=4, tile=tile, **attrs))
    plain = finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), H200)
    # Scores stay where they are: nothing is planned beside the operands.
    beside = {p.name for p in plain.params} - {"x0", "x1", "x2", "x3", "y0"}
    assert beside == ({"parts.m", "parts.l", "parts.o"} if len(tile) > 2 else set())
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, plain, ())
    reports = assemble(compile_object(module.text(), H200).decode(), tmp_path, H200.cpu)
    for launch in launches(plain):
        report = reports[launch.name]
        assert (report.spilled, report.stack) == (0, 0)
        assert launch.shared <= H200.max_shared_per_block


def test_zeros_that_fill_up_queries_share_no_register_with_scores() -> None:
    plain = finalize_gpu(_scheduled(attention(64, 256, 40, F16, tile=(64, 128))), H200)
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, plain, ())
    ptx = compile_object(module.text(), H200).decode()
    lines = re.findall(r"wgmma\.mma_async\S* \{([^}]*)\}, \{([^}]*)\}", ptx)
    assert lines
    for scores, queries in lines:
        assert not set(scores.split(", ")) & set(queries.split(", "))
