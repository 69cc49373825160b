"""Calls with tensors of torch's on the GPU, in torch's current stream, without waiting for the GPU.

What follows from the kinds of the arguments (type, shape, element type, device, strides) is made in
the first call with them. Later ones compare these, take memory for the results from torch's caching
allocator, write the addresses that have changed into a CUDA graph, and launch that: the host is
done with it in half the time of one kernel that is launched by itself.

A call that `torch.cuda.graph` captures launches its kernels into that graph. Its workspace is then
memory of that graph's, so that replays do not meet other calls there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tilewright.core.config import config
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Port
from tilewright.runtime.cuda.cuda_graph import CudaGraph
from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.execution_context import VECTOR_BYTES, CudaExecutionContext
from tilewright.runtime.cuda.gpu_program import EARLIER_CALL, GpuProgram
from tilewright.runtime.cuda.launch_recorder import RecordedLaunch
from tilewright.runtime.cuda.placed_launches import PlacedLaunches
from tilewright.runtime.cuda.stream_workspace import StreamWorkspace, workspace_of
from tilewright.runtime.cuda.torch_cuda import TorchCuda

MAX_KINDS = 256
"""Kinds of arguments that are known; more are met by forgetting all."""
MAX_STREAMS = 8
"""Streams that have a graph, of each kind."""

Kind = tuple[Any, ...]
Output = tuple[tuple[int, ...], tuple[int, ...], Any]
"""The shape, the strides and the element type of a result."""


class TensorView:
    """A tensor as the checks of arguments see an array; it is held until the call has ended."""

    def __init__(self, tensor: Any, dtype: np.dtype) -> None:
        self.tensor = tensor
        self.address = tensor.data_ptr()
        self.dtype = dtype
        self.shape = tuple(tensor.shape)
        self.ndim = len(self.shape)


class _Prepared:
    """What calls with arguments of one kind have in common."""

    def __init__(
        self,
        context: CudaExecutionContext,
        launches: Sequence[RecordedLaunch],
        outputs: Sequence[Output],
        copied: Sequence[int],
        has_grad: bool,
    ) -> None:
        """`copied` are the inputs that have to be made contiguous."""
        self.context = context
        self.launches = launches
        self.outputs = outputs
        self.copied = copied
        self.has_grad = has_grad
        self.graphs: dict[int, CudaGraph] = {}

    def graph_in(self, stream: int, places: Sequence[int]) -> CudaGraph:
        """The graph of a stream, whose arguments no other one uses."""
        if len(self.graphs) >= MAX_STREAMS:
            self.graphs.pop(next(iter(self.graphs))).close()
        made = self.graphs[stream] = CudaGraph(self.context.driver, self.launches, places)
        return made

    def close(self) -> None:
        """Destroy the graphs."""
        for graph in self.graphs.values():
            graph.close()
        self.graphs = {}


class TorchCalls:
    """The calls of one model whose arguments are tensors on the GPU."""

    def __init__(self, torch: TorchCuda, program: GpuProgram) -> None:
        self._torch = torch
        self._program = program
        self._known: dict[Kind, _Prepared] = {}
        self._workspaces: dict[int, StreamWorkspace] = {}
        self._outputs = [self._dtype(port) for port in program.outputs]

    def repeat(self, args: Sequence[Any]) -> Any:
        """The results of a call of a known kind; `None` if it is none."""
        try:
            prepared = self._known[_kind(args)]
        except (KeyError, AttributeError, TypeError):  # other arguments than tensors
            return None
        if self._torch.is_elsewhere() or (prepared.has_grad and self._torch.grad_enabled()):
            return None
        if prepared.copied:
            args = [a.contiguous() if n in prepared.copied else a for n, a in enumerate(args)]
        with self._program.lock:
            results = self._launch(prepared, args)
        if results is None:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def close(self) -> None:
        """Destroy graphs, and leave the workspaces to others."""
        for prepared in self._known.values():
            prepared.close()
        self._known, self._workspaces = {}, {}

    def run(self, args: Sequence[Any]) -> list[Any]:
        """The results of any call with a tensor on the GPU among its arguments."""
        torch, program = self._torch, self._program
        with torch.selected() if torch.is_elsewhere() else nullcontext(), program.lock:
            driver = program.open()
            with driver.relaxed():
                program.raise_reports(EARLIER_CALL)
                views = [self._view(driver, n, a) for n, a in enumerate(args)]
                arrays, plan = program.planner.bind(views)
                context = program.context(plan, torch.stream())
                prepared = self._prepare(context, args, arrays)
                if prepared is not None:
                    tensors = [view.tensor for view in views]
                    results = self._launch(prepared, tensors)
                    if results is not None:
                        return results
                return self._step_by_step(context, arrays)

    def _launch(self, prepared: _Prepared, args: Sequence[Any]) -> list[Any] | None:
        """The results of prepared launches; `None` if they cannot be used for this call."""
        torch, program, context = self._torch, self._program, prepared.context
        places, together = [], 0
        for a in args:
            place = a.data_ptr()
            places.append(place)
            together |= place
        if together % VECTOR_BYTES or context.closed:
            return None
        capturing = self._is_capturing(program.open())
        if config().gpu_sync and not capturing:
            return None
        program.raise_reports(EARLIER_CALL)
        results = [torch.empty(*output) for output in prepared.outputs]
        places += [result.data_ptr() for result in results]
        stream = torch.stream()
        if capturing:
            # The memory goes back to that graph's pool, for what is captured after this.
            memory = self._workspace(context.arena_size)
            there = [*places, memory.data_ptr()]
            PlacedLaunches(context.driver, prepared.launches, there).run(there, stream)
            return results
        workspace = self._workspaces.get(stream) or self._workspace_of(stream)
        with workspace.lock:
            places.append(workspace.address(context.arena_size, self._workspace))
            graph = prepared.graphs.get(stream) or prepared.graph_in(stream, places)
            graph.run(places, stream)
        return results

    def _workspace_of(self, stream: int) -> StreamWorkspace:
        found = self._workspaces[stream] = workspace_of(self._torch.number, stream)
        return found

    def _prepare(
        self, context: CudaExecutionContext, args: Sequence[Any], arrays: Sequence[Any]
    ) -> _Prepared | None:
        """What calls like this one have in common; `None` where launches are not always the same.

        It is kept if an argument needs no more than to be made contiguous.
        """
        launches = context.always()
        if launches is None or self._program.data_dependent or _any_host(arrays):
            return None
        outputs = [
            (shape, _strides(shape), dtype)
            for shape, dtype in zip(context.plan.outputs, self._outputs, strict=True)
        ]
        copied = [n for n, a in enumerate(args) if not a.is_contiguous()]
        prepared = _Prepared(context, launches, outputs, copied, any(a.requires_grad for a in args))
        if any(a.is_complex() or a.is_neg() for a in args):
            return prepared  # what is to be done depends on whether it is conjugated, too
        known = self._known.get(_kind(args))
        if known is not None and known.context is context:
            return known
        self._forget()
        self._known[_kind(args)] = prepared
        return prepared

    def _forget(self) -> None:
        """Drop kinds whose contexts are closed, and all where there are too many."""
        crowded = len(self._known) >= MAX_KINDS
        for kind, prepared in list(self._known.items()):
            if crowded or prepared.context.closed:
                self._known.pop(kind).close()

    def _step_by_step(self, context: CudaExecutionContext, arrays: Sequence[Any]) -> list[Any]:
        """The results of a run whose launches follow from values, or that uploads, or waits."""
        torch, program, plan = self._torch, self._program, context.plan
        if self._is_capturing(context.driver):
            raise ExecutionError(
                "cuda.capture",
                "the model waits for the GPU or reads from the host, which no CUDA graph can",
                help="give all inputs as tensors on the GPU; a model whose launches depend on "
                "values cannot be captured",
            )
        results = [
            torch.empty(shape, _strides(shape), dtype)
            for shape, dtype in zip(plan.outputs, self._outputs, strict=True)
        ]
        workspace = self._workspace_of(context.stream)
        with workspace.lock:
            inputs = context.put_inputs(arrays)
            arena = workspace.address(context.arena_size, self._workspace)
            outputs = [result.data_ptr() for result in results]
            program.check(context.compute([*inputs, *outputs, arena]), plan)
        if _any_host(arrays):  # they are in memory that the next call overwrites
            context.driver.synchronize(context.stream, context.doing)
            program.raise_reports()
        if not program.data_dependent:
            return results
        shapes = program.narrowed(plan, context)
        return [
            r.view(-1)[: math.prod(shape)].view(shape)
            for r, shape in zip(results, shapes, strict=True)
        ]

    def _is_capturing(self, driver: Driver) -> bool:
        try:
            return bool(self._torch.capturing())
        except RuntimeError:
            driver.synchronize_all()  # where a kernel has failed, this says so with its name
            raise

    def _workspace(self, size: int) -> Any:
        return self._torch.empty((size,), (1,), self._torch.dtype("uint8"))

    def _view(self, driver: Driver, position: int, value: Any) -> Any:
        """An argument that is dense, aligned and on the model's GPU; others as they are."""
        torch, inputs = self._torch, self._program.inputs
        if not torch.is_tensor(value):
            on_gpu = hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray)
            if not on_gpu:
                return value
            value = torch.from_dlpack(value)
        if torch.gpu_of(value) is None or position >= len(inputs):
            return value
        port = inputs[position]
        self._check(driver, port, value)
        tensor = value.detach().resolve_conj().resolve_neg().contiguous()
        if tensor.data_ptr() % VECTOR_BYTES:
            tensor = tensor.clone()
        return TensorView(tensor, port.dtype.numpy)

    def _check(self, driver: Driver, port: Port, tensor: Any) -> None:
        if (number := self._torch.gpu_of(tensor)) != driver.number:
            where = f"on GPU {number}, the model on GPU {driver.number}"
            raise ExecutionError(
                "run.device", f"input {port.name} is {where}", help="move it there: tensor.to(...)"
            )
        if not self._torch.is_strided(tensor):
            layout = str(tensor.layout).removeprefix("torch.")
            raise ExecutionError(
                "run.layout",
                f"input {port.name} is a tensor of layout {layout}",
                help="give a dense one: tensor.to_dense()",
            )
        if tensor.requires_grad and self._torch.grad_enabled():
            raise ExecutionError(
                "run.gradient",
                f"input {port.name} asks for a gradient, and the model gives none",
                help="call it under torch.no_grad(), or give tensor.detach()",
            )
        if tensor.dtype != self._dtype(port):
            given = str(tensor.dtype).removeprefix("torch.")
            raise ExecutionError(
                "run.dtype",
                f"input {port.name} is {port.dtype}, got an array of {given}",
                help=f"convert it: tensor.to(torch.{port.dtype.numpy.name})",
            )

    def _dtype(self, port: Port) -> Any:
        found = self._torch.dtype(port.dtype.numpy.name)
        if found is None:
            raise ExecutionError(
                "run.torch-type",
                f"{port.name} is {port.dtype}, of which torch has no tensors",
                help="give NumPy arrays",
            )
        return found


def _kind(args: Sequence[Any]) -> Kind:
    """What prepared launches depend on."""
    return tuple(
        [
            (type(a), a.shape, a.dtype, a.device, a.stride(), a.requires_grad, a.is_neg())
            for a in args
        ]
    )


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(max(d, 1) for d in shape[n + 1 :]) for n in range(len(shape)))


def _any_host(arrays: Sequence[Any]) -> bool:
    return any(not isinstance(a, TensorView) for a in arrays)
