"""A finalized loop function as machine code in the test's process, beside the interpreter.

check_native_func(func, {"x": x, "y": y}, {"N": 7})     # y as the interpreter makes it
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from tilewright.arith.walk import free_vars
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.host.threadpool.pool import threadpool_ir
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import bound_variables, expressions
from tilewright.target.host import host

Arrays = Mapping[str, np.ndarray]


@cache
def _pool() -> bytes:
    return compile_object(threadpool_ir(host().triple), host())


def sizes_of(func: Func) -> tuple[str, ...]:
    """The symbolic sizes that a function mentions."""
    exprs = [*expressions(func.body), *(d for p in func.params for d in p.shape)]
    names = {name for e in exprs for name in free_vars(e)}
    return tuple(sorted(names - bound_variables(func.body)))


def llvm_text(func: Func) -> str:
    """The LLVM module of one function."""
    module = ModuleBuilder()
    emit_func(module, func, sizes_of(func))
    return module.text()


class NativeFunc:
    """Machine code of one finalized function; call it with arrays by name."""

    def __init__(self, func: Func, threads: int = 1) -> None:
        self.func = func
        self.sizes = sizes_of(func)
        library = llvm.JITLibraryBuilder().add_current_process()
        library.add_object_img(compile_object(llvm_text(func), host()))
        library.add_object_img(_pool())
        for name in (func.name, "tw_set_threads", "tw_shutdown"):
            library.export_symbol(name)
        self._linker = llvm.create_lljit_compiler(use_jit_link=True)
        self._code = library.link(self._linker, "test")
        kinds = [ctypes.c_void_p] * len(func.params) + [ctypes.c_int64] * len(self.sizes)
        self._run = ctypes.CFUNCTYPE(None, *kinds)(self._code[func.name])
        self._shutdown = ctypes.CFUNCTYPE(None)(self._code["tw_shutdown"])
        ctypes.CFUNCTYPE(None, ctypes.c_int32)(self._code["tw_set_threads"])(threads)

    def __call__(self, arrays: Arrays, sizes: Mapping[str, int] | None = None) -> None:
        given = [arrays[p.name] for p in self.func.params]
        assert all(a.flags.c_contiguous for a in given)
        self._run(*(a.ctypes.data for a in given), *((sizes or {})[s] for s in self.sizes))

    def close(self) -> None:
        self._shutdown()
        self._code.close()
        self._linker.close()


def run_native(
    func: Func, arrays: Arrays, sizes: Mapping[str, int] | None = None, threads: int = 1
) -> None:
    """Compile and run once, writing into the output arrays."""
    native = NativeFunc(func, threads)
    try:
        native(arrays, sizes)
    finally:
        native.close()


def both(
    func: Func, arrays: Arrays, sizes: Mapping[str, int] | None = None, threads: int = 1
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What machine code and interpreter make of copies of the arrays, outputs by name."""
    verify_func(func)
    found = {k: v.copy() for k, v in arrays.items()}
    expected = {k: v.copy() for k, v in arrays.items()}
    run_native(func, found, sizes, threads)
    run_func(func, expected, sizes)
    return {o: found[o] for o in func.outputs}, {o: expected[o] for o in func.outputs}


def check_native_func(
    func: Func, arrays: Arrays, sizes: Mapping[str, int] | None = None, threads: int = 1
) -> None:
    """Machine code and interpreter agree bit for bit, any NaN being like another."""
    found, expected = both(func, arrays, sizes, threads)
    for name in func.outputs:
        assert_same(found[name], expected[name], name)


def assert_same(found: np.ndarray, expected: np.ndarray, name: str = "") -> None:
    """Equal values and signs of zero; a NaN equals any other."""
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        a, b = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(a, b, err_msg=name)
    number = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a[number]), np.signbit(b[number]), err_msg=name)
