"""Attention in f32 as thread blocks compute it, beside the loops of CPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.ptxas import assemble
from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import on_threads
from tests.schedule.builtin.gpu.scheduled import H200, finalized
from tilewright.arith.expr import const
from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import BOOL, F32, I32, DType
from tilewright.finalize.gpu.check_synchronization import check_synchronization
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.attention.flash_loops import flash_attention_func
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.simt_loops import shared_bytes, simt_func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu

HEADS = (0, 2, 1, 3)


def _problem(
    queries: int,
    keys: int,
    size: int = 8,
    columns: int = 0,
    heads: int = 1,
    mask: tuple[DType, ...] = (),
    lengths: bool = False,
    tile: tuple[int, ...] = (16, 32),
    **attrs: object,
) -> Problem:
    wide = columns or size
    q, y = tensor(F32, 2, heads, queries, size), tensor(F32, 2, heads, queries, wide)
    k, v = tensor(F32, 2, 1, keys, size), tensor(F32, 2, 1, keys, wide)
    masks = [tensor(dtype, queries, keys) for dtype in mask]
    more = [*(masks[:1] or [None]), tensor(I32, 2) if lengths else None, *masks[1:]]
    given = FusedAttentionAttrs(scale=0.3, **attrs)
    return Problem(given, (q, k, v, *more), y, tile)


def _agree(p: Problem) -> None:
    func = simt_func(p)
    verify_func(func)
    assert parse_func(print_func(func), "") == func
    plain = flash_attention_func(replace(p, tile=()))
    arrays = sample(plain, {})
    expected = run(plain, arrays, {})["y0"].copy()
    np.testing.assert_allclose(run(func, arrays, {})["y0"], expected, rtol=2e-5, atol=2e-6)
    found = run(finalized(_scheduled(func)), arrays, {})["y0"]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def _scheduled(func: Func) -> Func:
    result = schedule_for_gpu(replace(func, annotations=(ALIGNED_PARAMS,)), frozenset(), H200)
    assert result.rule == "gpu.thread_blocks"
    return result.func


@for_each(
    "p",
    [
        _problem(16, 32),
        _problem(20, 40, 12, 36, heads=2),
        _problem(33, 70, window_right=0, tile=(32, 32)),
        _problem(20, 70, window_right=2, window_left=5, offset=const(9)),
        _problem(20, 40, mask=(BOOL,), fully_masked="zero"),
        _problem(20, 40, mask=(F32, F32), softcap=3.0, bias_last=True),
        _problem(20, 40, lengths=True, bottom_right=True, window_right=0, fully_masked="finite"),
    ],
)
def test_loops_compute_what_those_of_cpus_do(p: Problem) -> None:
    _agree(p)


def test_operands_and_results_may_lie_in_another_order() -> None:
    plain = _problem(20, 40, heads=2)
    q, k, v = (tensor(F32, *(t.shape[d] for d in HEADS)) for t in plain.ins[:3] if t is not None)
    orders = dict.fromkeys(("q_perm", "k_perm", "v_perm", "y_perm"), HEADS)
    out = tensor(F32, *(plain.out.shape[d] for d in HEADS))
    _agree(Problem(replace(plain.attrs, **orders), (q, k, v), out, plain.tile))


@pytest.mark.slow
def test_emitted_code_by_threads_of_this_machine() -> None:
    func = simt_func(_problem(20, 40, 8, 36, window_right=0, offset=const(7)))
    on_threads(func, _scheduled(func), {})


def test_threads_synchronize() -> None:
    check_synchronization(finalize_gpu(_scheduled(simt_func(_problem(16, 70))), H200))


@pytest.mark.ptxas
@pytest.mark.parametrize("size", [64, 40])
def test_kernels_assemble_without_spills(size: int, tmp_path: Path) -> None:
    func = simt_func(_problem(1024, 1000, size, heads=4, tile=(128, 64), window_right=0))
    plain = finalize_gpu(_scheduled(func), H200)
    (launch,) = launches(plain)
    module = ModuleBuilder()
    emit_launches(module, plain, [])
    text = compile_object(module.text(), H200).decode()
    report = assemble(text, tmp_path, H200.cpu)[launch.name]
    assert (report.spilled, report.stack) == (0, 0)
    assert 0 <= launch.shared - shared_bytes(size, size, 128, 64) < 2048  # buffers are aligned
    assert 2 * launch.shared <= H200.shared_per_sm - 2 * H200.reserved_shared
    assert 2 * report.registers * launch.threads <= H200.registers_per_sm
    assert "ld.shared.b32" not in text  # all of it is read as vectors
