"""The entry points: kernels in order, places of buffers, symbolic sizes and shapes."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from tilewright.arith.expr import Var, const, maximum
from tilewright.codegen.clock import CLOCK_IR
from tilewright.codegen.function import ModuleText
from tilewright.codegen.llvm import compile_object
from tilewright.codegen.model import KernelCall, ModelCode, emit_model, place
from tilewright.codegen.statements import emit_func
from tilewright.ir.loop.text import parse_func
from tilewright.passes.plan_memory import Placement
from tilewright.target.cpu import host

N = Var("N")
SCALE = """
func @scale(x: f32[N], w: f32[N], out y: f32[N]) {
  for i in serial(N) { y[i] = x[i] * w[i] }
}"""


class _Linked:
    def __init__(self, code: ModelCode) -> None:
        module = ModuleText()
        emit_func(module, parse_func(SCALE), ("N",))
        library = llvm.JITLibraryBuilder().add_current_process()
        for text in (module.text(), emit_model(code), CLOCK_IR):
            library.add_object_img(compile_object(text, host()))
        for name in ("tw_main", "tw_main_profiled", "tw_arena_size", "tw_output_shapes"):
            library.export_symbol(name)
        self.linker = llvm.create_lljit_compiler(use_jit_link=True)
        self.code = library.link(self.linker, "model")

    def call(self, name: str, result: type | None, *arguments: object) -> int:
        kinds = [ctypes.c_void_p] * len(arguments)
        return ctypes.CFUNCTYPE(result, *kinds)(self.code[name])(*arguments)

    def close(self) -> None:
        self.code.close()
        self.linker.close()


def test_kernels_run_in_order_on_their_places() -> None:
    """arena = x * w[0:N]; y = arena * x, with the arena's buffer placed behind another one."""
    placement = Placement((N * 4, N * 4), ((), (0,)))
    middle = place("arena", placement.offsets[1])
    calls = (
        KernelCall("scale", (place("input", 0), place("weights", 64), middle), ("N",)),
        KernelCall("scale", (middle, place("input", 0), place("output", 0)), ("N",)),
    )
    shapes = ((N, const(3)), (), (maximum(N - 5, 0),))
    linked = _Linked(ModelCode(("N",), calls, shapes, placement=placement))
    for n in (0, 1, 9):
        dims = (ctypes.c_int64 * 1)(n)
        assert linked.call("tw_arena_size", ctypes.c_int64, dims) == 8 * n
        found = (ctypes.c_int64 * 3)()
        linked.call("tw_output_shapes", None, dims, found)
        assert list(found) == [n, 3, max(n - 5, 0)]
        given_x, w = np.arange(n, dtype="f4"), np.full(16 + n, 3, "f4")
        y, arena, ns = np.zeros(n, "f4"), np.zeros(2 * n + 1, "f4"), np.zeros(2, np.int64)
        inputs = (ctypes.c_void_p * 1)(given_x.ctypes.data)
        outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
        given = [inputs, outputs, dims, arena.ctypes.data, w.ctypes.data]
        assert linked.call("tw_main", ctypes.c_int32, *given) == 0
        np.testing.assert_array_equal(y, 3 * given_x * given_x)
        y[:] = 0
        assert linked.call("tw_main_profiled", ctypes.c_int32, *given, ns.ctypes.data) == 0
        np.testing.assert_array_equal(y, 3 * given_x * given_x)
        assert (ns > 0).all()
    linked.close()


def test_a_model_without_kernels() -> None:
    linked = _Linked(ModelCode((), (), ()))
    assert linked.call("tw_main", ctypes.c_int32, None, None, None, None, None) == 0
    assert linked.call("tw_arena_size", ctypes.c_int64, None) == 0
    linked.close()
