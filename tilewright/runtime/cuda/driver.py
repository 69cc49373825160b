"""The CUDA driver through ctypes: every call checked, its errors ours.

The driver is loaded when a model first needs it. A machine without one compiles for a GPU and saves
what it has compiled all the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import driver_structs, tensor_map
from tilewright.runtime.cuda.driver_failures import DriverFailures
from tilewright.runtime.cuda.driver_structs import EARLY, TOGETHER, Shape
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.prepared_launch import PreparedLaunch

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
    "cuThreadExchangeStreamCaptureMode": (_PTR,),
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
_NON_BLOCKING = 1
_NO_TIMING = 2
# The driver is shut down already, at the end of the process.
_GONE = 4
# The mode of captures in which a thread may allocate memory and wait, for all but what it captures.
_RELAXED = 2


class Driver:
    """One GPU: memory, streams, code. Handles are plain numbers."""

    def __init__(self, device: int = 0) -> None:
        self._library = _load()
        self.failures = DriverFailures(self._library)
        self._attributes: dict[int, int] = {}  # of launches of a kernel
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
        status = self._library.cuCtxSetCurrent(self._context)
        if status:
            self.failures.check(status, "entering the GPU's context")

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
        return self.failures.memory()

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

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Allow what captures of streams forbid elsewhere, such as to allocate memory."""
        mode = ctypes.c_int(_RELAXED)
        exchange = "cuThreadExchangeStreamCaptureMode"
        self._call(exchange, ctypes.byref(mode), doing="preparing a model")
        try:
            yield
        finally:
            self._library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

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
        self.failures.check(status, f"loading kernel {name}", said)
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
        self._attributes.pop(found, None)
        if early:
            self._attributes[found] = EARLY
        return found

    def set_max_dynamic_shared(self, function: int, size: int, name: str) -> None:
        """Set the limit of dynamic shared memory of a kernel."""
        doing = f"giving kernel {name} {size} bytes of shared memory"
        self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, size, doing=doing)

    def set_shared_carveout(self, function: int, name: str) -> None:
        """Set the carveout of a kernel: all of L1 as shared memory but the least cache."""
        doing = f"setting the carveout of kernel {name}"
        self._call("cuFuncSetAttribute", function, _SHARED_SHARE, 100, doing=doing)

    def set_cooperative(self, function: int) -> None:
        """Make all launches of a kernel cooperative: its blocks have grid barriers."""
        self._attributes[function] = TOGETHER

    def tensor_map(self, start: int, shape: Sequence[int], box: Sequence[int]) -> Any:
        """Encode a tensor map."""
        found = tensor_map.blank()
        given = tensor_map.encoding(found, start, shape, box)
        self._call("cuTensorMapEncodeTiled", *given, doing="describing a matrix")
        return found

    def prepared(
        self, function: int, shape: Shape, arguments: Arguments, name: str
    ) -> PreparedLaunch:
        """A launch to be done often; `shape` is its blocks, threads and shared bytes of each."""
        return PreparedLaunch(function, shape, arguments, name, self._attributes.get(function))

    def start(self, prepared: PreparedLaunch, stream: int) -> None:
        """Run a kernel in a stream."""
        given = prepared.arguments.pointers(self.tensor_map)
        status = self._library.cuLaunchKernelEx(
            prepared.config(stream), prepared.function, given, None
        )
        if status:
            self.failures.check(status, f"launching kernel {prepared.name}")

    def launch(
        self, function: int, shape: Shape, arguments: Arguments, stream: int, name: str
    ) -> None:
        """Run a kernel once."""
        self.failures.launched = (name,)
        self.start(self.prepared(function, shape, arguments, name), stream)

    def create_graph(self) -> int:
        """Create an empty CUDA graph."""
        return self._made("cuGraphCreate", 0, doing="making a graph")

    def add_node(self, graph: int, earlier: Sequence[int], prepared: PreparedLaunch) -> int:
        """Add a kernel node that depends on `earlier` nodes."""
        doing = f"adding kernel {prepared.name}"
        about = prepared.node(self.tensor_map)
        node = self._made("cuGraphAddKernelNode", graph, None, 0, about, doing=doing)
        self._whole.discard(node)
        if prepared.attribute == TOGETHER:
            self._whole.add(node)
            which = (node, TOGETHER, ctypes.byref(driver_structs.yes()))
            self._call("cuGraphKernelNodeSetAttribute", *which, doing=doing)
        early = prepared.attribute == EARLY and self._whole.isdisjoint(earlier)
        lists = driver_structs.edges(earlier, node, early)
        self._call("cuGraphAddDependencies_v2", graph, *lists, doing=doing)
        return node

    def instantiate(self, graph: int) -> int:
        """Instantiate a graph."""
        return self._made("cuGraphInstantiateWithFlags", graph, 0, doing="making a graph")

    def change_node(self, ready: int, node: int, prepared: PreparedLaunch) -> None:
        """Update the arguments of a kernel node of an instantiated graph."""
        about = prepared.node(self.tensor_map)
        status = self._library.cuGraphExecKernelNodeSetParams(ready, node, about)
        if status:
            self.failures.check(status, f"changing kernel {prepared.name}")

    def launch_graph(self, ready: int, stream: int) -> None:
        """Launch a graph."""
        status = self._library.cuGraphLaunch(ready, stream)
        if status:
            self.failures.check(status, "running the model's graph")

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
        if status != _GONE and self.failures.lost is None:
            self.failures.check(status, doing)

    def _call(self, function: str, *arguments: Any, doing: str) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            self.failures.check(status, doing)


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
