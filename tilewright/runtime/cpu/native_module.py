"""Object files in, callable functions out: a compiled model in this process."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.runtime.linker.link import LinkedCode, link

_PTR, _I32, _I64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

ABI: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "tw_call": (_I32, (_PTR,)),
    "tw_arena_size": (_I64, (_PTR,)),
    "tw_output_shapes": (None, (_PTR, _PTR)),
    "tw_set_threads": (None, (_I32,)),
    "tw_get_threads": (_I32, ()),
    "tw_set_spin": (None, (_I32,)),
    "tw_shutdown": (None, ()),
}
"""The functions of a compiled model: name, result type, argument types."""


class NativeModule:
    """Object files linked together in this process; `functions` holds the model's entry points.

    The machine code goes away with `close`, which ends the pool's threads first, or at the latest
    when the object is collected or the interpreter ends.
    """

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        code = link(objects)
        self.functions: dict[str, Callable[..., Any]] = {
            name: ctypes.CFUNCTYPE(result, *arguments)(code.address(name))
            for name, (result, arguments) in ABI.items()
        }
        self._finalizer = weakref.finalize(self, _unload, self.functions["tw_shutdown"], code)

    def close(self) -> None:
        """End the threads and unload the code. No function may be called any more."""
        self._finalizer()


def _unload(shutdown: Callable[[], None], code: LinkedCode) -> None:
    shutdown()  # the threads run the code
    code.close()
