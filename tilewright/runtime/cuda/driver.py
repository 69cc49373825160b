"""The CUDA driver through ctypes: every call checked, its errors ours.

The driver is loaded when a model first needs it. A machine without one compiles for a GPU and saves
what it has compiled all the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import driver_structs, tensor_map
from tilewright.runtime.cuda.kernel_args import Arguments

LIBRARIES = ("libcuda.so.1", "libcuda.so")
_PTR, _U32, _SIZE, _INT = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_int

# The functions used, and the types of their arguments; each gives a status.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U32,),
    "cuDriverGetVersion": (_PTR,),
    "cuDeviceGetCount": (_PTR,),
    "cuDeviceGet": (_PTR, _INT),
    "cuDeviceGetName": (_PTR, _INT, _INT),
    "cuDeviceGetAttribute": (_PTR, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_PTR, _INT),
    "cuCtxSetCurrent": (_PTR,),
    "cuMemGetInfo_v2": (_PTR, _PTR),
    "cuMemAlloc_v2": (_PTR, _SIZE),
    "cuMemFree_v2": (ctypes.c_uint64,),
    "cuMemHostAlloc": (_PTR, _SIZE, _U32),
    "cuMemFreeHost": (_PTR,),
    "cuMemcpyHtoDAsync_v2": (ctypes.c_uint64, _PTR, _SIZE, _PTR),
    "cuMemcpyDtoHAsync_v2": (_PTR, ctypes.c_uint64, _SIZE, _PTR),
    "cuMemcpyDtoDAsync_v2": (ctypes.c_uint64, ctypes.c_uint64, _SIZE, _PTR),
    "cuMemsetD8Async": (ctypes.c_uint64, ctypes.c_ubyte, _SIZE, _PTR),
    "cuStreamCreate": (_PTR, _U32),
    "cuStreamDestroy_v2": (_PTR,),
    "cuStreamSynchronize": (_PTR,),
    "cuStreamWaitEvent": (_PTR, _PTR, _U32),
    "cuCtxSynchronize": (),
    "cuEventCreate": (_PTR, _U32),
    "cuEventDestroy_v2": (_PTR,),
    "cuEventRecord": (_PTR, _PTR),
    "cuEventSynchronize": (_PTR,),
    "cuEventElapsedTime": (_PTR, _PTR, _PTR),
    "cuModuleLoadDataEx": (_PTR, _PTR, _U32, _PTR, _PTR),
    "cuModuleUnload": (_PTR,),
    "cuModuleGetFunction": (_PTR, _PTR, ctypes.c_char_p),
    "cuFuncSetAttribute": (_PTR, _INT, _INT),
    "cuTensorMapEncodeTiled": tensor_map.SIGNATURE,
    "cuLaunchKernelEx": (_PTR, _PTR, _PTR, _PTR),
    "cuLaunchCooperativeKernel": (_PTR, *(_U32,) * 7, _PTR, _PTR),
    "cuGraphCreate": (_PTR, _U32),
    "cuGraphAddKernelNode": (_PTR, _PTR, _PTR, _SIZE, _PTR),
    "cuGraphAddDependencies_v2": (_PTR, _PTR, _PTR, _PTR, _SIZE),
    "cuGraphKernelNodeSetAttribute": (_PTR, _INT, _PTR),
    "cuGraphExecKernelNodeSetParams": (_PTR, _PTR, _PTR),
    "cuGraphInstantiateWithFlags": (_PTR, _PTR, ctypes.c_ulonglong),
    "cuGraphDestroy": (_PTR,),
    "cuGraphLaunch": (_PTR, _PTR),
    "cuGraphExecDestroy": (_PTR,),
}
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_L2_SIZE = 38
_LOG_BUFFER, _LOG_SIZE = 5, 6
_DYNAMIC_SHARED, _SHARED_SHARE = 8, 9
_LOG_BYTES = 8192
# What the host was doing when the failure of a kernel was reported.
RUNNING = "running the model"
_NON_BLOCKING = 1
_NO_TIMING = 2
_OUT_OF_MEMORY = 2
# The driver is shut down already, at the end of the process.
_GONE = 4
# Errors of a kernel after which its context is unusable.
_FATAL = frozenset((700, 702, 709, 710, 714, 715, 716, 717, 718, 719))


class Driver:
    """One GPU: memory, streams, code. Handles are plain numbers."""

    def __init__(self, device: int = 0) -> None:
        self._library = _load()
        self._lost = False
        self._early: set[int] = set()
        self._together: set[int] = set()
        self._whole: set[int] = set()  # graph nodes of cooperative kernels
        self.number = device
        self._call("cuInit", 0, doing="starting the driver")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), device, doing="looking for a GPU")
        self._context = _PTR()
        self._call(
            "cuDevicePrimaryCtxRetain",
            ctypes.byref(self._context),
            self._device,
            doing="opening it",
        )

    def enter(self) -> None:
        """Make the context current in the calling thread."""
        self._call("cuCtxSetCurrent", self._context, doing="entering the GPU's context")

    def name(self) -> str:
        """The GPU's name."""
        text = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", text, 256, self._device, doing="asking for the GPU's name")
        return text.value.decode()

    def capability(self) -> tuple[int, int]:
        """The GPU's compute capability."""
        major, minor = (self._attribute(a) for a in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
        return major, minor

    def l2(self) -> int:
        """The bytes of the GPU's L2 cache."""
        return self._attribute(_L2_SIZE)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        arguments = (ctypes.byref(value), number, self._device)
        self._call("cuDeviceGetAttribute", *arguments, doing="asking about the GPU")
        return value.value

    def allocate(self, size: int) -> int:
        """Allocate device memory."""
        address = ctypes.c_uint64()
        self._call(
            "cuMemAlloc_v2", ctypes.byref(address), max(size, 1), doing=f"allocating {size} bytes"
        )
        return address.value

    def memory(self) -> tuple[int, int]:
        """The bytes of the GPU's memory that are free, and all of them."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def free(self, address: int) -> None:
        """Free device memory."""
        self._release("cuMemFree_v2", address, doing="freeing memory")

    def allocate_pinned(self, size: int) -> int:
        """Allocate pinned host memory."""
        return self._made("cuMemHostAlloc", max(size, 1), 0, doing=f"pinning {size} bytes")

    def free_pinned(self, address: int) -> None:
        """Free pinned host memory."""
        self._release("cuMemFreeHost", address, doing="freeing pinned memory")

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy from the host to the GPU."""
        self._call("cuMemcpyHtoDAsync_v2", to, source, size, stream, doing="copying to the GPU")

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy from the GPU to the host."""
        self._call("cuMemcpyDtoHAsync_v2", to, source, size, stream, doing="copying from the GPU")

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy within the GPU."""
        self._call("cuMemcpyDtoDAsync_v2", to, source, size, stream, doing="copying on the GPU")

    def fill(self, to: int, byte: int, size: int, stream: int) -> None:
        """Set every byte of device memory."""
        self._call("cuMemsetD8Async", to, byte, size, stream, doing="filling memory")

    def create_stream(self) -> int:
        """Create a stream."""
        return self._made("cuStreamCreate", _NON_BLOCKING, doing="making a stream")

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream."""
        self._release("cuStreamDestroy_v2", stream, doing="ending a stream")

    def synchronize(self, stream: int, doing: str = "waiting for the GPU") -> None:
        """Wait for all work of a stream; raises the errors of that work."""
        self._call("cuStreamSynchronize", stream, doing=doing)

    def synchronize_all(self) -> None:
        """Wait for all work of all streams."""
        self._call("cuCtxSynchronize", doing="waiting for the GPU")

    def wait_stream(self, stream: int, other: int) -> None:
        """Make a stream wait for the work that another has been given so far."""
        event = self._made("cuEventCreate", _NO_TIMING, doing="making an event")
        try:
            self.record(event, other)
            self._call("cuStreamWaitEvent", stream, event, 0, doing="waiting for a stream")
        finally:
            self.destroy_event(event)

    def create_event(self) -> int:
        """Create an event."""
        return self._made("cuEventCreate", 0, doing="making an event")

    def record(self, event: int, stream: int) -> None:
        """Record an event in a stream."""
        self._call("cuEventRecord", event, stream, doing="recording an event")

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events."""
        self._call("cuEventSynchronize", end, doing="waiting for an event")
        value = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(value), start, end, doing="timing")
        return value.value

    def destroy_event(self, event: int) -> None:
        """Destroy an event."""
        self._release("cuEventDestroy_v2", event, doing="ending an event")

    def load_module(self, code: bytes, name: str) -> int:
        """Compile and load PTX; gives a module."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        keys = (ctypes.c_int * 2)(_LOG_BUFFER, _LOG_SIZE)
        values = (_PTR * 2)(ctypes.addressof(log), _LOG_BYTES)
        handle = _PTR()
        status = self._library.cuModuleLoadDataEx(
            ctypes.byref(handle), ctypes.c_char_p(code), 2, keys, values
        )
        said = log.value.decode(errors="replace").strip()
        self._check(status, f"loading kernel {name}", said)
        return handle.value or 0

    def unload_module(self, module: int) -> None:
        """Unload a module."""
        self._release("cuModuleUnload", module, doing="unloading code")

    def function(self, module: int, name: str, early: bool = False) -> int:
        """A kernel of a module; `early` allows programmatic dependent launch."""
        found = self._made(
            "cuModuleGetFunction", module, name.encode(), doing=f"looking for kernel {name}"
        )
        # a handle may be used again after its module is unloaded
        (self._early.add if early else self._early.discard)(found)
        self._together.discard(found)
        return found

    def set_max_dynamic_shared(self, function: int, size: int, name: str) -> None:
        """Set the limit of dynamic shared memory of a kernel."""
        self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, size, doing=f"kernel {name}")

    def set_shared_carveout(self, function: int, name: str) -> None:
        """Set the carveout of a kernel: all of L1 as shared memory but the least cache."""
        self._call("cuFuncSetAttribute", function, _SHARED_SHARE, 100, doing=f"kernel {name}")

    def set_cooperative(self, function: int) -> None:
        """Make all launches of a kernel cooperative: its blocks have grid barriers."""
        self._together.add(function)
        self._early.discard(function)

    def tensor_map(self, start: int, shape: Sequence[int], box: Sequence[int]) -> Any:
        """Encode a tensor map."""
        found = tensor_map.blank()
        given = tensor_map.encoding(found, start, shape, box)
        self._call("cuTensorMapEncodeTiled", *given, doing="describing a matrix")
        return found

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        stream: int,
        name: str,
    ) -> None:
        """Run a kernel; `shape` is its blocks, the threads and the shared bytes of each."""
        doing, given = f"kernel {name}", arguments.pointers(self.tensor_map)
        if function in self._together:
            grid, threads, shared = shape
            sizes = (grid, 1, 1, threads, 1, 1, shared)
            self._call("cuLaunchCooperativeKernel", function, *sizes, stream, given, doing=doing)
            return
        about = driver_structs.launch(shape, stream, function in self._early)
        self._call("cuLaunchKernelEx", ctypes.byref(about), function, given, None, doing=doing)

    def create_graph(self) -> int:
        """Create an empty CUDA graph."""
        return self._made("cuGraphCreate", 0, doing="making a graph")

    def add_node(
        self,
        graph: int,
        earlier: Sequence[int],
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        name: str,
    ) -> int:
        """Add a kernel node that depends on `earlier` nodes; the rest is as in `launch`."""
        about = driver_structs.node(function, shape, arguments.pointers(self.tensor_map))
        given = (graph, None, 0, ctypes.byref(about))
        node = self._made("cuGraphAddKernelNode", *given, doing=f"kernel {name}")
        self._whole.discard(node)
        if function in self._together:
            self._whole.add(node)
            which = (node, driver_structs.TOGETHER, ctypes.byref(driver_structs.yes()))
            self._call("cuGraphKernelNodeSetAttribute", *which, doing=f"kernel {name}")
        early = function in self._early and self._whole.isdisjoint(earlier)
        lists = driver_structs.edges(earlier, node, early)
        self._call("cuGraphAddDependencies_v2", graph, *lists, doing=f"kernel {name}")
        return node

    def instantiate(self, graph: int) -> int:
        """Instantiate a graph."""
        return self._made("cuGraphInstantiateWithFlags", graph, 0, doing="making a graph")

    def change_node(
        self,
        ready: int,
        node: int,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        name: str,
    ) -> None:
        """Update the arguments of a kernel node of an instantiated graph."""
        about = driver_structs.node(function, shape, arguments.pointers(self.tensor_map))
        given = (ready, node, ctypes.byref(about))
        self._call("cuGraphExecKernelNodeSetParams", *given, doing=f"kernel {name}")

    def launch_graph(self, ready: int, stream: int) -> None:
        """Launch a graph."""
        self._call("cuGraphLaunch", ready, stream, doing="running the model's graph")

    def destroy_graph(self, graph: int, ready: int) -> None:
        """Destroy a graph, and its instance, if there is one."""
        if ready:
            self._release("cuGraphExecDestroy", ready, doing="ending a graph")
        self._release("cuGraphDestroy", graph, doing="ending a graph")

    def _made(self, function: str, *arguments: Any, doing: str) -> int:
        """The handle that a function writes to its first argument."""
        handle = _PTR()
        self._call(function, ctypes.byref(handle), *arguments, doing=doing)
        return handle.value or 0

    def _release(self, function: str, handle: int, doing: str) -> None:
        """Destroy a handle; with a lost context, it is gone already."""
        status = getattr(self._library, function)(handle)
        if status != _GONE and not self._lost:
            self._check(status, doing)

    def _call(self, function: str, *arguments: Any, doing: str) -> None:
        self._check(getattr(self._library, function)(*arguments), doing)

    def _check(self, status: int, doing: str, said: str = "") -> None:
        if status == 0:
            return
        if status == _OUT_OF_MEMORY:
            raise self._no_memory(doing)
        self._lost |= status in _FATAL
        name, text = _PTR(), _PTR()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        what = f"{_text(text)} ({_text(name)})" if name.value else f"status {status}"
        raise ExecutionError(
            "cuda.driver",
            f"the GPU's driver failed while {doing}: {what}",
            notes=tuple(said.splitlines()),
            help="TW_GPU_SYNC=1 tells which kernel it was" if doing.startswith(RUNNING) else "",
        )

    def _no_memory(self, doing: str) -> ExecutionError:
        free, total = self.memory()
        return ExecutionError(
            "cuda.memory",
            f"not enough memory for {doing}: of the GPU's {total} bytes {free} are free",
            help="run the model on smaller inputs, or close models and arrays that lie there",
        )


def _text(pointer: ctypes.c_void_p) -> str:
    return ctypes.string_at(pointer.value).decode() if pointer.value else ""


@cache
def _load() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for function, arguments in _SIGNATURES.items():
            if not hasattr(library, function):
                raise ExecutionError(
                    "cuda.old",
                    f"the NVIDIA driver here is too old: it has no {function}",
                    help="install one of CUDA 12.4 or newer",
                )
            getattr(library, function).argtypes = arguments
            getattr(library, function).restype = ctypes.c_int
        return library
    raise ExecutionError(
        "cuda.missing",
        f"there is no NVIDIA driver here: none of {', '.join(LIBRARIES)} can be loaded",
        help="save the model and load it on a machine with an NVIDIA GPU",
    )


@cache
def open_driver() -> Driver:
    """The driver of this process's GPU."""
    return Driver()
