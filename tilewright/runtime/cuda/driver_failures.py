"""Errors of the CUDA driver as ours, and the memory of the one after which nothing works.

A kernel that reads where no memory is takes the process's context with it: whatever is asked of the
driver afterwards fails in the same way. So the first such failure is kept, and told each time.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tilewright.core.errors import ExecutionError

RUNNING = "running the model"
"""What the host was doing when the failure of a kernel was reported."""
_OUT_OF_MEMORY = 2
# Errors of a kernel after which its context is unusable.
_FATAL = frozenset((700, 702, 709, 710, 714, 715, 716, 717, 718, 719))
_HELP = "TW_GPU_SYNC=1 tells which kernel it was"


class DriverFailures:
    """What statuses of a driver mean. `launched` are the kernels that were launched last."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.lost: ExecutionError | None = None
        self.launched: tuple[str, ...] = ()

    def require_context(self) -> None:
        """Raise the error of a context that was lost earlier."""
        if self.lost is not None:
            raise ExecutionError(
                "cuda.lost",
                f"the GPU cannot be used any more in this process: {self.lost.message}",
                notes=self.lost.notes,
                help=self.lost.help or "start the process again",
            )

    def check(self, status: int, doing: str, said: str = "") -> None:
        """Raise the error that a status stands for, unless it is 0."""
        if status == 0:
            return
        self.require_context()
        if status == _OUT_OF_MEMORY:
            raise self._no_memory(doing)
        if status in _FATAL:
            self.lost = self._fatal(status, doing)
            raise self.lost
        message = f"the GPU's driver failed while {doing}: {self._words(status)}"
        raise ExecutionError("cuda.driver", message, notes=tuple(said.splitlines()))

    def _fatal(self, status: int, doing: str) -> ExecutionError:
        """The error of a kernel: that which was waited for, else one that was launched before."""
        if doing.startswith("kernel ") and doing.endswith(" ran"):
            kernel = doing.removesuffix(" ran")
            return ExecutionError("cuda.kernel", f"{kernel} failed: {self._words(status)}")
        names = ", ".join(dict.fromkeys(self.launched))
        return ExecutionError(
            "cuda.kernel",
            f"a kernel failed, as was seen while {doing}: {self._words(status)}",
            notes=(f"launched last: {names}",) if names else (),
            help=_HELP,
        )

    def _words(self, status: int) -> str:
        name, text = ctypes.c_void_p(), ctypes.c_void_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        return f"{_text(text)} ({_text(name)})" if name.value else f"status {status}"

    def memory(self) -> tuple[int, int]:
        """The bytes of the GPU's memory that are free, and all of them."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def _no_memory(self, doing: str) -> ExecutionError:
        free, total = self.memory()
        return ExecutionError(
            "cuda.memory",
            f"not enough memory for {doing}: of the GPU's {total} bytes {free} are free",
            help="run the model on smaller inputs, or close models and arrays that lie there",
        )


def _text(pointer: ctypes.c_void_p) -> str:
    return ctypes.string_at(pointer.value).decode() if pointer.value else ""
