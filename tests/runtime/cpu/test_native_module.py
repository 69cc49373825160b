from __future__ import annotations

import ctypes
import gc
import os

import numpy as np
import pytest

from tests.runtime.fake_model import MODEL_IR, arguments, compile_ir, objects
from tilewright.core.errors import ExecutionError
from tilewright.runtime.cpu.native_module import ABI, NativeModule


def tasks() -> int:
    return len(os.listdir("/proc/self/task"))


def test_every_function_is_there() -> None:
    module = NativeModule(objects())
    assert set(module.functions) == set(ABI)
    dims = (ctypes.c_int64 * 1)(5)
    shapes = (ctypes.c_int64 * 3)()
    assert module.functions["tw_arena_size"](dims) == 20
    module.functions["tw_output_shapes"](dims, shapes)
    assert list(shapes) == [5, 3, 10]
    module.close()
    module.close()


def test_many_modules_side_by_side() -> None:
    compiled = objects()
    modules = [NativeModule(compiled) for _ in range(20)]
    for threads, module in enumerate(modules, 1):
        module.functions["tw_set_threads"](threads)
    assert [m.functions["tw_get_threads"]() for m in modules] == list(range(1, 21))
    for module in modules:
        module.close()


def test_collection_ends_the_threads() -> None:
    before = tasks()
    module = NativeModule(objects())
    module.functions["tw_set_threads"](3)
    x, z = arguments(9)
    y, s, arena, weights = (np.empty(64, np.float32) for _ in range(4))
    dims = (ctypes.c_int64 * 1)(9)
    holders = (ctypes.c_void_p * 2)(x.ctypes.data, z.ctypes.data)
    first = ctypes.addressof(holders)
    context = (ctypes.c_int64 * 12)(
        *(2, 0, ctypes.addressof(dims), arena.ctypes.data, weights.ctypes.data, 0, 0, 0),
        *(first, first + 8, y.ctypes.data, s.ctypes.data),
    )
    call = module.functions["tw_call"]
    assert call(ctypes.addressof(context)) == 0
    np.testing.assert_array_equal(s[:9], z)
    assert tasks() == before + 2
    del module, call
    gc.collect()
    assert tasks() == before


def test_a_missing_symbol_is_named() -> None:
    with pytest.raises(ExecutionError, match="needs tw_parallel, which") as caught:
        NativeModule({"model": compile_ir(MODEL_IR)})
    assert caught.value.code == "native.link"


def test_rubbish_is_refused() -> None:
    with pytest.raises(ExecutionError, match="cannot be linked"):
        NativeModule({"model": b"not an object file"})
