"""Object files in, callable functions out: linking a compiled model into this process.

LLVM's ORC linker is used rather than MCJIT: a symbol that cannot be found is an error here, where
MCJIT would end the process. libc's symbols come from the process itself.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from tilewright.core.errors import ExecutionError

_PTR, _I32, _I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

ABI: dict[str, tuple[Any, tuple[Any, ...]]] = {
    # inputs, outputs, dims, arena, weights; the profiled one also nanoseconds
    "tw_main": (_I32, (_PTR, _PTR, _PTR, _PTR, _PTR)),
    "tw_main_profiled": (_I32, (_PTR, _PTR, _PTR, _PTR, _PTR, _PTR)),
    "tw_arena_size": (_I64, (_PTR,)),
    "tw_output_shapes": (None, (_PTR, _PTR)),
    "tw_set_threads": (None, (_I32,)),
    "tw_get_threads": (_I32, ()),
    "tw_shutdown": (None, ()),
}
"""The functions of a compiled model: name, result type, argument types."""


class NativeModule:
    """Object files linked together in this process; `functions` holds the model's entry points.

    The machine code goes away with `close`, which ends the pool's threads first, or at the latest
    when the object is collected or the interpreter ends.
    """

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        _initialise()
        linker, code = _link(objects)
        self.functions: dict[str, Callable[..., Any]] = {
            name: ctypes.CFUNCTYPE(result, *arguments)(code[name])
            for name, (result, arguments) in ABI.items()
        }
        self._finalizer = weakref.finalize(
            self, _unload, self.functions["tw_shutdown"], code, linker
        )

    def close(self) -> None:
        """End the threads and unload the code. No function may be called any more."""
        self._finalizer()


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _link(objects: Mapping[str, bytes]) -> tuple[Any, Any]:
    linker = llvm.create_lljit_compiler(use_jit_link=True)
    library = llvm.JITLibraryBuilder().add_current_process()
    for data in objects.values():
        library.add_object_img(data)
    for name in ABI:
        library.export_symbol(name)
    try:
        return linker, library.link(linker, "model")
    except RuntimeError as error:
        raise ExecutionError(
            "native.link",
            "the model's machine code cannot be linked",
            notes=tuple(str(error).splitlines()),
            help="compile the model again with this version of tilewright",
        ) from error


def _unload(shutdown: Callable[[], None], code: Any, linker: Any) -> None:
    # in this order: threads run the code, the code lives in the linker
    shutdown()
    code.close()
    linker.close()
