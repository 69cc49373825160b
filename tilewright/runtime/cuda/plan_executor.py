"""The interpreter of the execution plan on a GPU: it launches kernels and reads sizes back.

A plan that depends on sizes and on inputs known to the host can be captured in a CUDA graph: it
launches the same kernels each time. A condition on another value, a data-dependent size and a loop
with a condition make the host wait for the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from tilewright.runtime.cuda.kernel_args import Arguments, TensorMapArg
from tilewright.runtime.size_expr import SizeExpr, evaluate

Action = Mapping[str, Any]
BufferRef = Sequence[Any]


class Device(Protocol):
    """What a run needs of the driver."""

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        stream: int,
        name: str,
    ) -> None:
        """Run a kernel; `shape` is its blocks, the threads and the shared bytes of each."""

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy from the GPU to the host."""

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Copy within the GPU."""

    def synchronize(self, stream: int, doing: str = ...) -> None:
        """Wait for all work of a stream."""


@dataclass(frozen=True)
class BufferBases:
    """The base addresses of all buffers that kernels read and write."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    arena: int
    weights: int
    index_status: int = 0


def is_capturable(actions: Sequence[Action]) -> bool:
    """Whether a CUDA graph can have these actions: runs of the same sizes launch the same."""
    return all(_CAPTURABLE[a["do"]](a) for a in actions)


_CAPTURABLE: dict[str, Callable[[Action], bool]] = {
    "call": lambda a: True,
    "check_sizes": lambda a: True,
    "read_size": lambda a: False,
    "conditional": lambda a: (
        a["place"] is None and is_capturable(a["then"]) and is_capturable(a["other"])
    ),
    "counted_loop": lambda a: (
        a["begin"] is None and a["going"] is None and is_capturable(a["actions"])
    ),
}


def conditions(actions: Sequence[Action], names: Container[str]) -> list[SizeExpr]:
    """The conditions that mention one of these names, nested ones as well."""
    found: list[SizeExpr] = []
    for a in actions:
        if a["do"] == "conditional":
            found += [a["condition"]] if _mentions(a["condition"], names) else []
            found += conditions((*a["then"], *a["other"]), names)
        elif a["do"] == "counted_loop":
            found += conditions(a["actions"], names)
    return found


def _mentions(formula: SizeExpr | None, names: Container[str]) -> bool:
    if isinstance(formula, list):
        return any(_mentions(part, names) for part in formula[1:])
    return isinstance(formula, str) and formula in names


class PlanExecutor:
    """One run: `sizes` has the value of each size, and gets the data-dependent ones.

    `between` is called after each step with its index. Where `waits`, each kernel has ended before
    the next is launched.
    """

    def __init__(
        self,
        device: Device,
        kernels: Mapping[str, Any],
        functions: Mapping[str, int],
        bases: BufferBases,
        sizes: dict[str, int],
        stream: int,
        between: Callable[[int], None] | None = None,
        waits: bool = False,
    ) -> None:
        self.device = device
        self.kernels = kernels
        self.functions = functions
        self.bases = bases
        self.sizes = sizes
        self.stream = stream
        self.between = between
        self.waits = waits
        self._carried: dict[int, int] = {}

    def do(self, actions: Sequence[Action]) -> int:
        """All actions in order; the status with which the run ends, 0 if all went well."""
        for action in actions:
            status = _DO[action["do"]](self, action)
            if status:
                return status
        return 0

    def call(self, action: Action) -> int:
        """Launch the kernels of a step."""
        kernel = self.kernels[action["kernel"]]
        values = [self.value(s) for s in action["sizes"]]
        own = dict(zip(kernel["sizes"], values, strict=True))
        words = [*map(self.address, action["buffers"]), *values]
        for _, group in groupby(kernel["launches"], key=itemgetter("loop")):
            launches = list(group)
            for step in range(evaluate(launches[0]["steps"], own)):
                for launch in launches:
                    self._launch(launch, own, [*words, step])
        if self.between is not None:
            self.between(action["step"])
        return 0

    def _launch(
        self, launch: Mapping[str, Any], sizes: Mapping[str, int], words: Sequence[int]
    ) -> None:
        grid, name = evaluate(launch["grid"], sizes), launch["name"]
        if grid > 0:
            shape = (grid, launch["threads"], launch["shared"])
            given = Arguments(words, [_tensor_map(m, sizes) for m in launch["maps"]])
            self.device.launch(self.functions[name], shape, given, self.stream, name)
            if self.waits:
                self.device.synchronize(self.stream, f"kernel {name} ran")

    def check_sizes(self, action: Action) -> int:
        """End the run unless a condition holds."""
        return 0 if self.value(action["condition"]) else int(action["status"])

    def read_size(self, action: Action) -> int:
        """Read a data-dependent size back from the GPU."""
        size = self._read(action["place"], ctypes.c_int64)
        self.sizes[action["name"]] = size
        return 0 if 0 <= size <= self.value(action["limit"]) else int(action["status"])

    def conditional(self, action: Action) -> int:
        """Do one of two lists of actions."""
        holds = (
            bool(self.value(action["condition"]))
            if action["place"] is None
            else self._truth(action["place"])
        )
        status = self.do(action["then"] if holds else action["other"])
        for name, one, two in action["sizes"]:
            self.sizes[name] = self.value(one if holds else two)
        return status

    def counted_loop(self, action: Action) -> int:
        """A loop whose carried values are double-buffered."""
        count, known = (
            self.value(action["count"]),
            action["begin"] is None and action["going"] is None,
        )
        going = action["begin"] is None or self._truth(action["begin"])
        carried = [_LoopCarried(self, c, count if known else 1) for c in action["carried"]]
        steps = 0
        while steps < count and going:
            self.sizes[action["counter"]] = steps
            for c in carried:
                self._carried |= {c.read_number: c.read, c.written_number: c.written}
            status = self.do(action["actions"])
            if status:
                return status
            going = action["going"] is None or self._truth(action["going"])
            for c in carried:
                c.swap()
            steps += 1
        for c in carried:
            c.copy_result(self)
        if action["trip_count"]:
            self.sizes[action["trip_count"]] = steps
        return 0

    def value(self, formula: Any) -> int:
        """A size, now."""
        return evaluate(formula, self.sizes)

    def address(self, place: BufferRef) -> int:
        """The address of a buffer."""
        space, offset, start = place[0], self.value(place[1]), self.value(place[2])
        if space == "arena":
            return self.bases.arena + offset + start
        if space == "weights":
            return self.bases.weights + offset + start
        if space == "carried":
            return self._carried[offset] + start
        if space == "index_status":
            return self.bases.index_status + offset
        return (self.bases.inputs if space == "input" else self.bases.outputs)[offset] + start

    def _truth(self, place: BufferRef) -> bool:
        return self._read(place, ctypes.c_uint8) != 0

    def _read(self, place: BufferRef, kind: Any) -> int:
        cell = kind()
        self.device.download(
            ctypes.addressof(cell), self.address(place), ctypes.sizeof(cell), self.stream
        )
        self.device.synchronize(self.stream)
        return int(cell.value)


def _tensor_map(about: Mapping[str, Any], sizes: Mapping[str, int]) -> TensorMapArg:
    shape = tuple(evaluate(size, sizes) for size in about["shape"])
    return TensorMapArg(about["buffer"], shape, tuple(about["box"]))


class _LoopCarried:
    """The two buffers of a loop-carried value, and which is read and written now.

    With a known number of iterations the last one writes to the result itself.
    """

    def __init__(self, run: PlanExecutor, about: Mapping[str, Any], count: int) -> None:
        self.read_number, self.written_number = about["read"], about["written"]
        self.result, self.spare = run.address(about["result"]), run.address(about["spare"])
        self.size = run.value(about["size"])
        self.read = run.address(about["initial"])
        self.written = self.result if count % 2 else self.spare

    def swap(self) -> None:
        self.read = self.written
        self.written = self.spare if self.written == self.result else self.result

    def copy_result(self, run: PlanExecutor) -> None:
        if self.read != self.result and self.size:
            run.device.copy(self.result, self.read, self.size, run.stream)


_DO: dict[str, Callable[[PlanExecutor, Action], int]] = {
    "call": PlanExecutor.call,
    "check_sizes": PlanExecutor.check_sizes,
    "read_size": PlanExecutor.read_size,
    "conditional": PlanExecutor.conditional,
    "counted_loop": PlanExecutor.counted_loop,
}
