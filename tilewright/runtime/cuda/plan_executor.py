"""A run on a GPU, action by action: kernels are launched, and what the host must know is read back.

What only depends on sizes, and on inputs that the host knows, can be captured: the same launches
whenever these are. A choice by another value, a size that is learnt or a loop with a condition wait
for the GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

from tilewright.runtime.cuda.kernel_args import Arguments, Matrix
from tilewright.runtime.size_tree import Formula, value_of

Action = Mapping[str, Any]
Place = Sequence[Any]


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
class Spaces:
    """Where everything lies that kernels read and write."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    arena: int
    weights: int


def is_fixed(actions: Sequence[Action]) -> bool:
    """Whether the same is done in every run with the same sizes."""
    return all(_FIXED[a["do"]](a) for a in actions)


_FIXED: dict[str, Callable[[Action], bool]] = {
    "call": lambda a: True,
    "require": lambda a: True,
    "learn": lambda a: False,
    "choose": lambda a: a["place"] is None and is_fixed(a["then"]) and is_fixed(a["other"]),
    "repeat": lambda a: a["begin"] is None and a["going"] is None and is_fixed(a["actions"]),
}


def conditions(actions: Sequence[Action], names: Container[str]) -> list[Formula]:
    """The conditions of choices that mention one of these names, those inside of others as well."""
    found: list[Formula] = []
    for a in actions:
        if a["do"] == "choose":
            found += [a["condition"]] if _mentions(a["condition"], names) else []
            found += conditions((*a["then"], *a["other"]), names)
        elif a["do"] == "repeat":
            found += conditions(a["actions"], names)
    return found


def _mentions(formula: Formula | None, names: Container[str]) -> bool:
    if isinstance(formula, list):
        return any(_mentions(part, names) for part in formula[1:])
    return isinstance(formula, str) and formula in names


class Run:
    """One run: `sizes` has the value of each size, and gets those that are learnt.

    `between` is called after each step with its number. Where `waits`, each kernel has ended before
    the next is launched.
    """

    def __init__(
        self,
        device: Device,
        kernels: Mapping[str, Any],
        functions: Mapping[str, int],
        spaces: Spaces,
        sizes: dict[str, int],
        stream: int,
        between: Callable[[int], None] | None = None,
        waits: bool = False,
    ) -> None:
        self.device = device
        self.kernels = kernels
        self.functions = functions
        self.spaces = spaces
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
            for step in range(value_of(launches[0]["steps"], own)):
                for launch in launches:
                    self._launch(launch, own, [*words, step])
        if self.between is not None:
            self.between(action["step"])
        return 0

    def _launch(
        self, launch: Mapping[str, Any], sizes: Mapping[str, int], words: Sequence[int]
    ) -> None:
        grid, name = value_of(launch["grid"], sizes), launch["name"]
        if grid > 0:
            shape = (grid, launch["threads"], launch["shared"])
            given = Arguments(words, [_matrix(m, sizes) for m in launch["maps"]])
            self.device.launch(self.functions[name], shape, given, self.stream, name)
            if self.waits:
                self.device.synchronize(self.stream, f"kernel {name} ran")

    def require(self, action: Action) -> int:
        """End the run unless a condition holds."""
        return 0 if self.value(action["condition"]) else int(action["status"])

    def learn(self, action: Action) -> int:
        """Let a number on the GPU be a size from now on."""
        size = self._read(action["place"], ctypes.c_int64)
        self.sizes[action["name"]] = size
        return 0 if 0 <= size <= self.value(action["limit"]) else int(action["status"])

    def choose(self, action: Action) -> int:
        """Do one of two lists of actions."""
        holds = (
            bool(self.value(action["condition"]))
            if action["place"] is None
            else self._truth(action["place"])
        )
        status = self.do(action["then"] if holds else action["other"])
        for name, one, two in action["late"]:
            self.sizes[name] = self.value(one if holds else two)
        return status

    def repeat(self, action: Action) -> int:
        """Steps that read one buffer of each carried value and write the other, in turns."""
        count, known = (
            self.value(action["count"]),
            action["begin"] is None and action["going"] is None,
        )
        going = action["begin"] is None or self._truth(action["begin"])
        carried = [_Carried(self, c, count if known else 1) for c in action["carried"]]
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
                c.turn()
            steps += 1
        for c in carried:
            c.bring_home(self)
        if action["late"]:
            self.sizes[action["late"]] = steps
        return 0

    def value(self, formula: Any) -> int:
        """A size, now."""
        return value_of(formula, self.sizes)

    def address(self, place: Place) -> int:
        """Where a place is."""
        space, offset, start = place[0], self.value(place[1]), self.value(place[2])
        if space == "arena":
            return self.spaces.arena + offset + start
        if space == "weights":
            return self.spaces.weights + offset + start
        if space == "carried":
            return self._carried[offset] + start
        return (self.spaces.inputs if space == "input" else self.spaces.outputs)[offset] + start

    def _truth(self, place: Place) -> bool:
        return self._read(place, ctypes.c_uint8) != 0

    def _read(self, place: Place, kind: Any) -> int:
        cell = kind()
        self.device.download(
            ctypes.addressof(cell), self.address(place), ctypes.sizeof(cell), self.stream
        )
        self.device.synchronize(self.stream)
        return int(cell.value)


def _matrix(about: Mapping[str, Any], sizes: Mapping[str, int]) -> Matrix:
    rows, columns = (value_of(about[word], sizes) for word in ("rows", "columns"))
    high, wide = about["box"]
    return Matrix(about["buffer"], rows, columns, (high, wide))


class _Carried:
    """The two buffers of a carried value, and which is read and written now.

    The last of a known number of steps writes where the result belongs.
    """

    def __init__(self, run: Run, about: Mapping[str, Any], count: int) -> None:
        self.read_number, self.written_number = about["read"], about["written"]
        self.result, self.spare = run.address(about["result"]), run.address(about["spare"])
        self.size = run.value(about["size"])
        self.read = run.address(about["initial"])
        self.written = self.result if count % 2 else self.spare

    def turn(self) -> None:
        self.read = self.written
        self.written = self.spare if self.written == self.result else self.result

    def bring_home(self, run: Run) -> None:
        if self.read != self.result and self.size:
            run.device.copy(self.result, self.read, self.size, run.stream)


_DO: dict[str, Callable[[Run, Action], int]] = {
    "call": Run.call,
    "require": Run.require,
    "learn": Run.learn,
    "choose": Run.choose,
    "repeat": Run.repeat,
}
