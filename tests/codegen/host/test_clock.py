from __future__ import annotations

import ctypes
import time

import llvmlite.binding as llvm

from tilewright.codegen.host.clock import CLOCK_IR
from tilewright.codegen.objects.compile import compile_object
from tilewright.target.host import host


def test_it_is_the_monotonic_clock() -> None:
    library = llvm.JITLibraryBuilder().add_current_process()
    library.add_object_img(compile_object(CLOCK_IR, host()))
    library.export_symbol("tw_now")
    linker = llvm.create_lljit_compiler(use_jit_link=True)
    code = library.link(linker, "clock")
    now = ctypes.CFUNCTYPE(ctypes.c_int64)(code["tw_now"])
    readings = [time.monotonic_ns(), now(), time.monotonic_ns(), now()]
    assert readings == sorted(readings)
    code.close()
    linker.close()
