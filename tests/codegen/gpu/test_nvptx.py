from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.codegen.gpu.ptxas import assemble
from tests.codegen.native_func import sizes_of
from tests.differential.kernel_graphs import KERNELS
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, finalized, scheduled
from tilewright.arith.evaluate import evaluate
from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.driver.artifact.packed_weights import pack
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def ptx(func: Func) -> str:
    """The assembly of a scheduled function."""
    module = ModuleBuilder(masks_vectors=False)
    plain = finalized(func)
    emit_launches(module, plain, sizes_of(plain))
    return compile_object(module.text(), H200).decode()


def check_on_threads(func: Func, constants: frozenset[str], sizes: Mapping[str, int]) -> None:
    """What is emitted computes what the loops it came from do."""
    plain = finalized(schedule_for_gpu(func, constants, H200).func)
    arrays = sample(func, sizes)
    expected = {name: a.copy() for name, a in run(func, arrays, sizes).items()}
    own = {
        p.name: np.zeros(max(evaluate(p.shape[0], sizes), 4), p.dtype.numpy) for p in plain.params
    }
    layouts = dict(plain.layouts)
    for name, array in arrays.items():
        packed = pack(array, layouts[name]) if name in layouts else array
        own[name][: packed.size] = packed.reshape(-1)
    run_launches(plain, own, sizes)
    for name, array in expected.items():
        started = ~np.isnan(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
        found = own[name][: array.size][started]
        np.testing.assert_allclose(found, array[started], rtol=1e-4, atol=1e-5)


EXCHANGE = """func @exchange(A: f32[N], out C: f32[N]) {
  alloc T: f32[256] @shared
  for b in grid((N + 255) // 256) {
    for x in thread(256) { if b * 256 + x < N { T[x] = A[b * 256 + x] } }
    for z in thread(128) { if b * 256 + z < N { C[b * 256 + z] = T[255 - z] } }
    C[b * 256 + 255 ? b * 256 + 255 < N] = 0.0
  }
}"""


def test_blocks_threads_barriers_and_shared_memory() -> None:
    text = ptx(parse_func(EXCHANGE))
    for word in (".entry exchange", ".reqntid 256", "%tid.x", "%ctaid.x", "bar.sync", "st.shared"):
        assert word in text


COUNTED = """func @counted(A: f32[64], out C: f32[64]) {
  for b in grid(2) {
    alloc T: f32[64] @shared
    alloc full: i64[2] @shared
    mbarrier_init full[0 : 2] count 1
    barrier
    for x in thread(64) { T[x] = A[x] }
    for z in thread(64) { C[z] = T[63 - z] }
  }
}"""


def test_a_dependent_launch_starts_its_mbarriers_before_it_waits() -> None:
    module, plain = ModuleBuilder(), parse_func(COUNTED)
    emit_launches(module, plain, sizes_of(plain), pdl=True)
    text = compile_object(module.text(), H200).decode()
    words = "mbarrier.init", "bar.sync", "griddepcontrol.wait", "ld.global"
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert text.count("griddepcontrol.wait") == 1


def test_a_dependent_launch_waits_before_it_touches_memory() -> None:
    module, plain = ModuleBuilder(), finalized(parse_func(EXCHANGE))
    emit_launches(module, plain, sizes_of(plain), pdl=True)
    text = compile_object(module.text(), H200).decode()
    begin = text.index("griddepcontrol.wait")
    assert begin < text.index("griddepcontrol.launch_dependents") < text.index("ld.global")
    assert "griddepcontrol" not in ptx(parse_func(EXCHANGE))


def test_masked_elements_of_a_vector_are_read_without_a_branch() -> None:
    func = parse_func(
        """func @cut(x: f16[85], out y: f16[96]) {
          for b in grid(1) { for t in thread(12) { for e in vectorize(8) {
            y[t * 8 + e] = x[t * 8 + e ? t * 8 + e < 85]
          } } }
        }"""
    )
    text = ptx(func)
    assert text.count("ld.global.b16") == 8
    assert "bra" not in text
    arrays = {"x": np.arange(85, dtype=np.float16), "y": np.full(96, 9, np.float16)}
    run_launches(finalized(func), arrays, {})
    np.testing.assert_array_equal(arrays["y"], np.pad(arrays["x"], (0, 11)))


def test_functions_of_our_own_need_no_library() -> None:
    for name in ("softmax", "layer_norm"):
        for result in scheduled(KERNELS[name](40, 64, 8)):
            assert ".extern" not in ptx(result.func)


@pytest.mark.ptxas
@pytest.mark.parametrize("sizes", [(96, 128, 64), (7, 19, 33)])
@pytest.mark.parametrize("name", ["matmul", "dense", "conv", "softmax", "layer_norm", "argmax"])
def test_built_in_kernels_assemble_without_spills(
    name: str, sizes: tuple[int, int, int], tmp_path: Path
) -> None:
    for result in scheduled(KERNELS[name](*sizes)):
        for kernel, report in assemble(ptx(result.func), tmp_path).items():
            assert (report.spilled, report.stack) == (0, 0), kernel
            assert report.registers <= H200.registers_per_thread
            assert report.shared <= H200.static_shared


@pytest.mark.ptxas
def test_the_largest_tile_assembles_without_spills(tmp_path: Path) -> None:
    (result,) = scheduled(KERNELS["matmul"](2048, 2048, 256))
    reports = assemble(ptx(result.func), tmp_path)
    for launch in launches(finalized(result.func)):
        report = reports[launch.name]
        assert report.spilled == report.stack == 0
        assert (
            report.registers * launch.threads * max(1, launch.min_blocks_per_sm)
            <= H200.registers_per_sm
        )
