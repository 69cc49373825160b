"""A compiled model on an NVIDIA GPU: call it, profile it, save it.

The driver is asked for when the model first runs, so that a machine without a GPU can make and save
one. Weights go to the GPU once; for each set of sizes there is a context with a captured graph.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.arguments import MAX_THREADS, count_argument, runs_argument
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.runtime.arena_layout import arena_layout
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.device_array import LEGACY_STREAM, DeviceArray
from tilewright.runtime.cuda.dlpack import CUDA, CUDA_MANAGED, Borrowed
from tilewright.runtime.cuda.driver import Driver, open_driver
from tilewright.runtime.cuda.execution_context import CudaExecutionContext
from tilewright.runtime.cuda.memory_pool import Pool
from tilewright.runtime.cuda.rotated_runs import RotatedRuns
from tilewright.runtime.host_memory import address
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.shape_plan import ShapePlan, ShapePlanner
from tilewright.runtime.size_expr import evaluate

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofline

MAX_CONTEXTS = 8
"""Sets of sizes whose execution contexts are kept."""
MAX_AHEAD = 16
"""The most graph launches that keep the GPU busy while the host launches step by step."""

# Of errors that a call did not wait for.
EARLIER_CALL = "in an earlier call"


class CudaExecutable(CompiledModel):
    """A model that runs on a GPU. Calls from several threads run one after another.

    Of NumPy arrays come NumPy arrays. Where an argument is on the GPU, a tensor of torch's, an
    array of CuPy's or a result of ours, it is read where it lies, and the results stay there.
    """

    def __init__(self, container: Container, driver: Driver | None = None) -> None:
        super().__init__(container)
        manifest = container.manifest
        self._program = manifest["program"]
        self._data_dependent = len(manifest.get("data_dependent_sizes", ()))
        functions: dict[str, Callable[..., Any]] = {
            "tw_arena_size": self._arena_size,
            "tw_output_shapes": self._fill_shapes,
        }
        limits = manifest.get("output_limits", ())
        self._planner = ShapePlanner(
            self._binder, self.outputs, functions, limits, self._data_dependent
        )
        self._driver = driver
        self._modules: list[int] = []
        self._functions: dict[str, int] = {}
        self._weights = 0
        self._own_stream = 0
        self._given_stream: int | None = None
        self._pool: Pool | None = None
        self._binder.taken = (np.ndarray, Borrowed)
        self._contexts: dict[int, CudaExecutionContext] = {}
        self._lock = threading.RLock()
        self._closed = False

    @property
    def threads(self) -> int:
        """0: a GPU uses no threads of the host."""
        return 0

    def set_threads(self, threads: int) -> None:
        """Accepts only 0: a GPU uses no threads of the host."""
        if count_argument("threads", threads, 0, MAX_THREADS):
            raise ConfigError(
                "threads.gpu",
                f"{threads} threads of the processor for a model that runs on a GPU",
                help="leave them out",
            )

    def profile(
        self, /, *args: Any, runs: int = 10, roofline: Roofline | None = None, **named: Any
    ) -> Profile:
        """Run the model `runs` times with an event after each kernel and as often as a whole."""
        from tilewright.runtime.profile import Measured, make_profile

        runs = runs_argument(runs)
        with self._lock:
            arrays, plan = self._bind(self._binder.in_order(args, named))
            context = self._context(plan)
            context.put_staged(arrays)
            self._check(context.compute(), plan)
            ahead = self._ahead(context)
            times = [self._step_times(context, ahead) for _ in range(runs)]
            wholes = [int(self._graph_time(context) * 1e6) for _ in range(runs)]
        sizes = dict(zip(self.manifest["symbols"], plan.dims, strict=False))
        measured = Measured(times, [sum(row) for row in times], wholes)
        footprint = self._container.weights.nbytes + plan.arena_size
        return make_profile(self._container.manifest, sizes, measured, footprint, roofline)

    def latency(self, *args: Any, runs: int = 100) -> list[float]:
        """Milliseconds of each of so many runs, with inputs on the GPU already."""
        with self._lock:
            arrays, plan = self._bind(args)
            context = self._context(plan)
            context.put_staged(arrays)
            self._check(context.compute(), plan)
            return [self._graph_time(context) for _ in range(runs)]

    def rotated(self, *args: Any, caches: float = 2.0, flush: bool = False) -> RotatedRuns:
        """Runs to be timed, on copies of the inputs and outputs; see `RotatedRuns`.

        The copies take `caches` times what the L2 cache holds.
        """
        with self._lock:
            arrays, plan = self._bind(args)
            context = self._context(plan)
            context.put_staged(arrays)
            self._check(context.compute(), plan)
            return RotatedRuns(context, int(caches * context.driver.l2()), flush)

    def use_stream(self, stream: int | None) -> None:
        """Do what calls with arrays on the GPU ask for in this stream, and do not wait for it.

        Such as `torch.cuda.current_stream().cuda_stream`: arrays are then read, written and used
        again in that stream's order, and 0 is the one that torch and CuPy use unless told
        otherwise. With None, as at first, a call has ended when it returns.
        """
        with self._lock:
            self._open().synchronize_all()
            self._given_stream = LEGACY_STREAM if stream == 0 else stream

    def check(self) -> None:
        """Wait for all calls, and raise the error of one that had an index outside its tensor.

        Calls that do not wait for the GPU leave it to the next call, or to this, to say so.
        """
        with self._lock:
            self._open().synchronize_all()
            self._raise_reports(EARLIER_CALL)

    def close(self) -> None:
        """Free the model's code and memory; it cannot be called any more.

        Results that are on the GPU stay there as long as they are held.
        """
        with self._lock:
            self._closed = True
            if self._driver is None:
                return
            self._driver.enter()
            self._unload(self._driver)

    def _run(
        self, args: Sequence[Any], into: Sequence[np.ndarray] | None = None
    ) -> Sequence[np.ndarray]:
        with self._lock:
            self._raise_reports(EARLIER_CALL)
            arrays, plan = self._bind(args)
            context = self._context(plan)
            results: Sequence[Any]
            if any(isinstance(array, Borrowed) for array in arrays):
                results = self._run_there(context, arrays)
            else:
                status, results = context.run(arrays)
                self._check(status, plan)
                self._raise_reports()
            if self._data_dependent:
                results = self._narrowed(results, plan, context)
        if into is None:
            return results
        for target, result in zip(into, results, strict=True):
            target[...] = result
        return into

    def _run_there(
        self, context: CudaExecutionContext, arrays: Sequence[np.ndarray | Borrowed]
    ) -> list[Any]:
        """The results as arrays in this device memory."""
        assert self._pool is not None
        driver = context.driver
        sizes = context.bytes[len(arrays) :]
        memory = [self._pool.take(size) for size in sizes]
        inputs = context.put_inputs(arrays)
        self._check(context.compute([*inputs, *(m.address for m in memory)]), context.plan)
        # Inputs from the host are in memory that the next call overwrites.
        host = any(isinstance(array, np.ndarray) for array in arrays)
        if self._given_stream is None or host:
            driver.synchronize(context.stream, context.doing)
            self._raise_reports()
        ports = zip(memory, context.plan.outputs, self.outputs, strict=True)
        return [DeviceArray(driver, m, s, p.dtype, self._given_stream) for m, s, p in ports]

    def _bind(self, args: Sequence[Any]) -> tuple[Sequence[Any], ShapePlan]:
        taken = [self._taken(n, a) if is_on_gpu(a) else a for n, a in enumerate(args)]
        return self._planner.bind(taken)

    def _taken(self, position: int, value: Any) -> Borrowed:
        """An argument on the GPU, ready to be read by the model's stream."""
        name = self.inputs[position].name if position < len(self.inputs) else str(position)
        driver = self._open()
        try:
            array = Borrowed(value.__dlpack__(stream=self._stream))
        except Exception as error:  # foreign code may raise anything
            raise ExecutionError(
                "run.array",
                f"input {name}: a {type(value).__name__} cannot be read where it is: {error}",
                help="give a tensor on the GPU without gradient",
            ) from error
        if array.device[1] != driver.number:
            where = f"on GPU {array.device[1]}, the model on GPU {driver.number}"
            raise ExecutionError("run.device", f"input {name} is {where}")
        if not array.contiguous:
            raise ExecutionError(
                "run.contiguous",
                f"input {name}: elements of the array on the GPU are not one behind the other",
                help="give a contiguous copy of it",
            )
        return array

    @property
    def _stream(self) -> int:
        return self._own_stream if self._given_stream is None else self._given_stream

    def _check(self, status: int, plan: ShapePlan) -> None:
        if status:
            raise self._failure(status, tuple(plan.dims), ())

    def _raise_reports(self, *notes: str) -> None:
        """Raise the error of an index that kernels have reported."""
        for context in self._contexts.values():
            words = context.take_reports()
            if words is not None:
                raise self._index_error(words, notes)

    def _context(self, plan: ShapePlan) -> CudaExecutionContext:
        driver = self._open()
        key = id(plan)
        if key not in self._contexts or self._contexts[key].plan is not plan:
            if len(self._contexts) >= MAX_CONTEXTS:
                driver.synchronize_all()  # what its calls report goes with it
                self._raise_reports(EARLIER_CALL)
                self._contexts.pop(next(iter(self._contexts))).close()
            inputs, outputs = (
                [p.dtype.numpy for p in ports] for ports in (self.inputs, self.outputs)
            )
            about = (self._program, self._functions, self._weights, plan, (inputs, outputs))
            self._contexts[key] = CudaExecutionContext(driver, *about, self._stream)
        self._contexts[key].stream = self._stream
        return self._contexts[key]

    def _open(self) -> Driver:
        """The driver, with the model's code and weights on the GPU."""
        if self._closed:
            raise ExecutionError("run.closed", "the model is closed", help="load it again")
        driver = self._driver = self._driver or open_driver()
        driver.enter()
        if self._pool is None:
            check_device(self.manifest["target"]["cpu"], driver)
            try:
                self._load(driver)
            except BaseException:
                self._unload(driver)
                raise
            self._pool = Pool(driver)
        return driver

    def _load(self, driver: Driver) -> None:
        for name, kernel in self._program["kernels"].items():
            module = driver.load_module(self._container.objects[name], name)
            self._modules.append(module)
            for launch in kernel["launches"]:
                name, shared = launch["name"], launch["shared"]
                self._functions[name] = driver.function(module, name, launch["pdl"])
                if shared:
                    driver.set_max_dynamic_shared(self._functions[name], shared, name)
                if launch["shared_carveout"]:
                    driver.set_shared_carveout(self._functions[name], name)
                if launch["cooperative"]:
                    driver.set_cooperative(self._functions[name])
        weights, stream = self._container.weights, driver.create_stream()
        self._own_stream = stream
        self._weights = driver.allocate(weights.nbytes)
        if weights.nbytes:
            driver.upload(self._weights, address(weights), weights.nbytes, stream)
        driver.synchronize(stream, "bringing the weights to the GPU")

    def _unload(self, driver: Driver) -> None:
        for context in self._contexts.values():
            context.close()
        if self._pool is not None:
            self._pool.close()
        if self._weights:
            driver.free(self._weights)
        if self._own_stream:
            driver.destroy_stream(self._own_stream)
        for module in self._modules:
            driver.unload_module(module)
        self._contexts, self._modules, self._pool = {}, [], None
        self._weights = self._own_stream = 0

    def _sizes(self, dims: ctypes.Array[ctypes.c_int64]) -> dict[str, int]:
        return dict(
            zip(
                (*self._program["symbols"], *self._program["data_dependent_sizes"]),
                dims,
                strict=False,
            )
        )

    def _arena_size(self, dims: ctypes.Array[ctypes.c_int64]) -> int:
        return arena_layout(self._program["arena"], self._sizes(dims))[1]

    def _fill_shapes(
        self, dims: ctypes.Array[ctypes.c_int64], found: ctypes.Array[ctypes.c_int64]
    ) -> None:
        shapes, sizes = self._program["output_shapes"], self._sizes(dims)
        for n, dim in enumerate(d for shape in shapes for d in shape):
            found[n] = evaluate(dim, sizes)

    def _narrowed(
        self, results: Sequence[Any], plan: ShapePlan, context: CudaExecutionContext
    ) -> list[Any]:
        """The part of each result that the run has written."""
        sizes = {**self._sizes(plan.dims), **context.data_dependent_sizes}
        shapes = self._planner.checked(
            [tuple(evaluate(d, sizes) for d in s) for s in self._program["output_shapes"]]
        )
        return [
            array.narrowed(shape)
            if isinstance(array, DeviceArray)
            else array.reshape(-1)[: int(np.prod(shape))].reshape(shape)
            for array, shape in zip(results, shapes, strict=True)
        ]

    def _ahead(self, context: CudaExecutionContext) -> int:
        """How many graph launches take the GPU as long as launching steps takes the host."""
        start = time.perf_counter()
        self._step_times(context, 0)
        seconds = time.perf_counter() - start
        return min(MAX_AHEAD, math.ceil(seconds * 1e3 / max(self._graph_time(context), 1e-3)))

    def _step_times(self, context: CudaExecutionContext, ahead: int) -> list[int]:
        """Nanoseconds of each step of one run: all times it was done, none if it was left out.

        So many whole runs come before, so that the GPU never waits for a launch.
        """
        driver = self._open()
        for _ in range(ahead):
            context.compute()
        events = [driver.create_event()]
        driver.record(events[0], context.stream)

        done: list[int] = []

        def note(step: int) -> None:
            done.append(step)
            events.append(driver.create_event())
            driver.record(events[-1], context.stream)

        context.launch_all(note)
        driver.synchronize(context.stream)
        times = [0] * len(self.manifest["kernels"])
        for step, (a, b) in zip(done, pairwise(events), strict=True):
            times[step] += int(driver.elapsed(a, b) * 1e6)
        for event in events:
            driver.destroy_event(event)
        return times

    def _graph_time(self, context: CudaExecutionContext) -> float:
        driver = self._open()
        start, end = driver.create_event(), driver.create_event()
        driver.record(start, context.stream)
        context.compute()
        driver.record(end, context.stream)
        elapsed = driver.elapsed(start, end)
        driver.destroy_event(start)
        driver.destroy_event(end)
        return elapsed


def is_on_gpu(value: Any) -> bool:
    """Whether an argument is an array in the memory of a GPU."""
    if isinstance(value, np.ndarray | Borrowed) or not hasattr(value, "__dlpack_device__"):
        return False
    return value.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)


def check_device(arch: str, driver: Driver) -> None:
    """Refuse a GPU that cannot run code for an architecture, such as `sm_90a`."""
    digits = arch.removeprefix("sm_").rstrip("af")
    wanted, have = (int(digits[:-1]), int(digits[-1])), driver.capability()
    exact = not arch[-1].isdigit()
    if have != wanted if exact else have < wanted:
        raise ExecutionError(
            "cuda.architecture",
            f"the model was compiled for {arch}, this machine's {driver.name()} is "
            f"sm_{have[0]}{have[1]}",
            help=f'compile it with target="cuda -arch=sm_{have[0]}{have[1]}"',
        )
