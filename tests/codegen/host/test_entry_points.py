"""The entry points: kernels in order, places of buffers, symbolic sizes and shapes."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np

from tilewright.arith.expr import Var, const, maximum
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.host.clock import CLOCK_IR
from tilewright.codegen.host.entry_points import emit_model
from tilewright.codegen.host.plan import (
    BufferRef,
    CheckSizes,
    Conditional,
    ExecutionPlan,
    KernelCall,
    place,
)
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.ir.loop.text import parse_func
from tilewright.passes.memory.plan_memory import RuntimePlacement
from tilewright.target.host import host

N = Var("N")
SCALE = """
func @scale(x: f32[N], w: f32[N], out y: f32[N]) {
  for i in serial(N) { y[i] = x[i] * w[i] }
}"""


class _Linked:
    def __init__(self, code: ExecutionPlan) -> None:
        module = ModuleBuilder()
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
    placement = RuntimePlacement((N * 4, N * 4), ((), (0,)))
    middle = place("arena", placement.offsets[1])
    calls = (
        KernelCall("scale", (place("input", 0), place("weights", 64), middle), (N,)),
        KernelCall("scale", (middle, place("input", 0), place("output", 0)), (N,)),
    )
    shapes = ((N, const(3)), (), (maximum(N - 5, 0),))
    linked = _Linked(ExecutionPlan(("N",), calls, shapes, placement=placement))
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


def test_values_inside_others_begin_later() -> None:
    """y[1:] = x[2:] * w, all three given by the caller."""
    x = BufferRef("input", const(0), const(8))
    y = BufferRef("output", const(0), N - N + 4)
    call = KernelCall("scale", (x, place("weights", 4), y), (N,))
    linked = _Linked(ExecutionPlan(("N",), (call,), ()))
    given, w, found = np.arange(7, dtype="f4"), np.arange(6, dtype="f4"), np.zeros(7, "f4")
    inputs = (ctypes.c_void_p * 1)(given.ctypes.data)
    outputs = (ctypes.c_void_p * 1)(found.ctypes.data)
    dims = (ctypes.c_int64 * 1)(5)
    args = [inputs, outputs, dims, None, w.ctypes.data]
    assert linked.call("tw_main", ctypes.c_int32, *args) == 0
    np.testing.assert_array_equal(found, [0, *(given[2:] * w[1:]), 0])
    linked.close()


def _status(linked: _Linked, n: int, x: np.ndarray, y: np.ndarray, truth: bool) -> int:
    """Run on inputs x, w and a truth value; `n` is the size, behind it is a data-dependent one."""
    dims, w = (ctypes.c_int64 * 2)(n, -1), np.full(n, 3, "f4")
    truths = np.array([truth])
    inputs = (ctypes.c_void_p * 3)(x.ctypes.data, w.ctypes.data, truths.ctypes.data)
    outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
    status = linked.call("tw_main", ctypes.c_int32, inputs, outputs, dims, None, None)
    found = (ctypes.c_int64 * 1)()
    linked.call("tw_output_shapes", None, dims, found)
    assert status or found[0] == (n if truth else max(n - 1, 0))
    return status


def test_checks_and_branches() -> None:
    """N < 8; y = x * w where the third input says so, else y[:N - 1] = x * x, by such a size."""
    x, w, y = place("input", 0), place("input", 1), place("output", 0)
    then = (KernelCall("scale", (x, w, y), (N,)),)
    other = (CheckSizes(const(0) < N, 2), KernelCall("scale", (x, x, y), (N,)))
    sizes = (("L", N, N - 1),)
    actions = (CheckSizes(N < 8, 1), Conditional(place("input", 2), then, other, sizes))
    linked = _Linked(ExecutionPlan(("N",), actions, ((Var("L"),),), data_dependent_sizes=("L",)))
    given = np.arange(9, dtype="f4")
    for n, truth, expected in (
        (5, True, 0),
        (5, False, 0),
        (8, True, 1),
        (0, True, 0),
        (0, False, 2),
    ):
        result = np.zeros(9, "f4")
        assert _status(linked, n, given, result, truth) == expected
        product = given[:n] * (3 if truth else given[:n])
        np.testing.assert_array_equal(result[:n], product if not expected else 0)
    linked.close()


def test_a_branch_by_sizes_and_its_clock() -> None:
    x, y = place("input", 0), place("output", 0)
    then = (KernelCall("scale", (x, x, y), (N,)),)
    other = (KernelCall("scale", (y, x, y), (N,)), *then)
    linked = _Linked(ExecutionPlan(("N",), (Conditional(N < 4, then, other),), ((N,),)))
    for n in (3, 6):
        dims, given, result = (ctypes.c_int64 * 1)(n), np.full(n, 2, "f4"), np.ones(n, "f4")
        inputs = (ctypes.c_void_p * 1)(given.ctypes.data)
        outputs = (ctypes.c_void_p * 1)(result.ctypes.data)
        ns = np.zeros(3, np.int64)
        arguments = [inputs, outputs, dims, None, None, ns.ctypes.data]
        assert linked.call("tw_main_profiled", ctypes.c_int32, *arguments) == 0
        np.testing.assert_array_equal(result, 4)
        assert (ns > 0).tolist() == ([True, False, False] if n < 4 else [False, True, True])
    linked.close()


def test_a_model_without_kernels() -> None:
    linked = _Linked(ExecutionPlan((), (), ()))
    assert linked.call("tw_main", ctypes.c_int32, None, None, None, None, None) == 0
    assert linked.call("tw_arena_size", ctypes.c_int64, None) == 0
    linked.close()
