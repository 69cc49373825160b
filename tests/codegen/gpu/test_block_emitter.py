from __future__ import annotations

import pytest

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.codegen.gpu.block_emitter import CP_ASYNC_COMMIT, CP_ASYNC_WAIT
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.gpu.synchronization import MBARRIER_TRY_WAIT
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.ir.loop.text import parse_func


@pytest.mark.parametrize("sizes", [(3, 19, 33), pytest.param((5, 64, 12), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["matmul", "conv", "softmax", "layer_norm", "argmax", "sum_all"])
def test_emitted_code_by_threads_of_this_machine(name: str, sizes: tuple[int, int, int]) -> None:
    for func, constants in sources(KERNELS[name](*sizes)):
        check_on_threads(func, constants, {})


@pytest.mark.parametrize("sizes", [(2, 9, 20), (3, 0, 2), (1, 70, 70)])
@pytest.mark.parametrize("name", ["matmul", "softmax", "max_columns"])
def test_symbolic_sizes_by_threads_of_this_machine(name: str, sizes: tuple[int, ...]) -> None:
    for func, constants in sources(KERNELS[name](*map(Var, "MNK"))):
        check_on_threads(func, constants, dict(zip("MNK", sizes, strict=True)))


WAITS = """func @f(out C: f32[4]) {
  for b in grid(1) {
    alloc m: i64[2] @shared
    cp_async_commit
    cp_async_wait 3
    mbarrier_wait m[1 : 1] parity 1
    for x in thread(4) { C[x] = 0.0 }
  }
}"""


def test_waits_for_copies_are_instructions() -> None:
    module = ModuleBuilder(H200.architecture)
    emit_launches(module, parse_func(WAITS), ())
    text = module.text()
    words = (f"call void @{CP_ASYNC_COMMIT}()", f"@{CP_ASYNC_WAIT}(i32 3)", MBARRIER_TRY_WAIT)
    places = [text.index(word) for word in words]
    assert places == sorted(places)
