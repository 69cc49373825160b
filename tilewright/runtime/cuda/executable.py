"""A compiled model on an NVIDIA GPU: call it, profile it, save it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.arguments import MAX_THREADS, count_argument, runs_argument
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.device_array import LEGACY_STREAM, DeviceArray
from tilewright.runtime.cuda.dlpack import CUDA, CUDA_MANAGED, Borrowed
from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.event_times import graph_time, launches_ahead, step_times
from tilewright.runtime.cuda.execution_context import CudaExecutionContext
from tilewright.runtime.cuda.gpu_program import EARLIER_CALL, GpuProgram, first_elements
from tilewright.runtime.cuda.memory_pool import Pool
from tilewright.runtime.cuda.rotated_runs import RotatedRuns
from tilewright.runtime.cuda.torch_calls import TensorView, TorchCalls
from tilewright.runtime.cuda.torch_cuda import TorchCuda
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.shape_plan import ShapePlan

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofline


class CudaExecutable(CompiledModel):
    """A model that runs on a GPU.

    Of NumPy arrays come NumPy arrays. Where an argument is a tensor of torch's on the GPU, the call
    goes to torch's current stream, nothing is waited for, and the results are such tensors. Other
    arrays on the GPU, of CuPy's or our results, are read where they lie, and results stay there.
    """

    def __init__(self, container: Container, driver: Driver | None = None) -> None:
        super().__init__(container)
        self._binder.taken = (np.ndarray, Borrowed, TensorView)
        errors = (self._failure, self._index_error)
        self._program = GpuProgram(container, self._binder, self.outputs, driver, errors)
        self._torch: TorchCalls | None = None
        self._given_stream: int | None = None
        self._pool: Pool | None = None

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Run the model; inputs by position or name. One output is given alone, more as a tuple."""
        if self._torch is not None and not named:
            found = self._torch.repeat(args)
            if found is not None:
                return found
        return super().__call__(*args, **named)

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

        runs, count = runs_argument(runs), len(self.manifest["kernels"])
        with self._program.lock:
            context = self._staged(self._binder.in_order(args, named))
            ahead = launches_ahead(context, count)
            times = [step_times(context, count, ahead) for _ in range(runs)]
            wholes = [int(graph_time(context) * 1e6) for _ in range(runs)]
        plan = context.plan
        sizes = dict(zip(self.manifest["symbols"], plan.dims, strict=False))
        measured = Measured(times, [sum(row) for row in times], wholes)
        footprint = self._container.weights.nbytes + plan.arena_size
        return make_profile(self._container.manifest, sizes, measured, footprint, roofline)

    def latency(self, *args: Any, runs: int = 100) -> list[float]:
        """Milliseconds of each of so many runs, with inputs on the GPU already."""
        with self._program.lock:
            context = self._staged(args)
            return [graph_time(context) for _ in range(runs)]

    def rotated(self, *args: Any, caches: float = 2.0, flush: bool = False) -> RotatedRuns:
        """Runs to be timed, on copies of the inputs and outputs; see `RotatedRuns`.

        The copies take `caches` times what the L2 cache holds.
        """
        with self._program.lock:
            context = self._staged(args)
            return RotatedRuns(context, int(caches * context.driver.l2()), flush)

    def use_stream(self, stream: int | None) -> None:
        """Do what calls with arrays on the GPU ask for in this stream, and do not wait for it.

        Such as CuPy's: arrays are then read, written and used again in that stream's order, and 0
        is the one that CuPy uses unless told otherwise. With None, as at first, a call has ended
        when it returns. Calls with tensors of torch's always go to torch's current stream.
        """
        with self._program.lock:
            self._program.open().synchronize_all()
            self._given_stream = LEGACY_STREAM if stream == 0 else stream

    def check(self) -> None:
        """Wait for all calls, and raise the error of one that had an index outside its tensor.

        Calls that do not wait for the GPU leave it to the next call, or to this, to say so.
        """
        with self._program.lock:
            self._program.open().synchronize_all()
            self._program.raise_reports(EARLIER_CALL)

    def close(self) -> None:
        """Free the model's code and memory; it cannot be called any more.

        Results that are on the GPU stay there as long as they are held.
        """
        with self._program.lock:
            if self._torch is not None:
                self._torch.close()
            self._program.close()
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def _run(
        self, args: Sequence[Any], into: Sequence[np.ndarray] | None = None
    ) -> Sequence[np.ndarray]:
        torch = sys.modules.get("torch")  # who has such tensors has imported it
        if torch is not None and into is None and any(is_torchs(torch, a) for a in args):
            with self._program.lock:
                self._torch = self._torch or TorchCalls(TorchCuda(torch), self._program)
            return self._torch.run(args)
        with self._program.lock:
            results = self._run_own(args)
        if into is None:
            return results
        for target, result in zip(into, results, strict=True):
            target[...] = result
        return into

    def _run_own(self, args: Sequence[Any]) -> Sequence[Any]:
        """The results in memory of the host, or of ours on the GPU."""
        program = self._program
        program.raise_reports(EARLIER_CALL)
        arrays, plan = self._bind(args)
        program.open()
        context = program.context(plan, self._stream)
        results: Sequence[Any]
        if any(isinstance(array, Borrowed) for array in arrays):
            results = self._run_there(context, arrays)
        else:
            status, results = context.run(arrays)
            program.check(status, plan)
            program.raise_reports()
        if not program.data_dependent:
            return results
        shapes = program.narrowed(plan, context)
        return [
            a.narrowed(s) if isinstance(a, DeviceArray) else first_elements(a, s)
            for a, s in zip(results, shapes, strict=True)
        ]

    def _run_there(self, context: CudaExecutionContext, arrays: Sequence[Any]) -> list[Any]:
        """The results as arrays in this device memory."""
        driver = context.driver
        self._pool = self._pool or Pool(driver)
        memory = [self._pool.take(size) for size in context.bytes[len(arrays) :]]
        inputs = context.put_inputs(arrays)
        places = [*inputs, *(m.address for m in memory), context.arena]
        self._program.check(context.compute(places), context.plan)
        # Inputs from the host are in memory that the next call overwrites.
        host = any(isinstance(array, np.ndarray) for array in arrays)
        if self._given_stream is None or host:
            driver.synchronize(context.stream, context.doing)
            self._program.raise_reports()
        ports = zip(memory, context.plan.outputs, self.outputs, strict=True)
        return [DeviceArray(driver, m, s, p.dtype, self._given_stream) for m, s, p in ports]

    def _staged(self, args: Sequence[Any]) -> CudaExecutionContext:
        """The context for these arguments, which has them, and has run once."""
        arrays, plan = self._bind(args)
        self._program.open()
        context = self._program.context(plan, self._stream)
        context.put_staged(arrays)
        self._program.check(context.compute(), plan)
        return context

    def _bind(self, args: Sequence[Any]) -> tuple[Sequence[Any], ShapePlan]:
        taken = [self._taken(n, a) if is_on_gpu(a) else a for n, a in enumerate(args)]
        return self._program.planner.bind(taken)

    def _taken(self, position: int, value: Any) -> Borrowed:
        """An argument on the GPU, ready to be read by the model's stream."""
        name = self.inputs[position].name if position < len(self.inputs) else str(position)
        driver = self._program.open()
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
        loaded = self._program.loaded
        own = 0 if loaded is None else loaded.stream
        return own if self._given_stream is None else self._given_stream


def is_torchs(torch: Any, value: Any) -> bool:
    """Whether an argument is a tensor of torch's on a GPU."""
    return isinstance(value, torch.Tensor) and bool(value.is_cuda)


def is_on_gpu(value: Any) -> bool:
    """Whether an argument is an array in the memory of a GPU."""
    if isinstance(value, np.ndarray | Borrowed) or not hasattr(value, "__dlpack_device__"):
        return False
    return value.__dlpack_device__()[0] in (CUDA, CUDA_MANAGED)
