"""A driver with no GPU behind it: memory is the host's, and so are the threads."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tests.codegen.host_threads import launch
from tilewright.arith.evaluate import evaluate
from tilewright.codegen.launches import launches
from tilewright.driver.build import ModelBuild, emit_kernel
from tilewright.ir.loop.interp import run_func
from tilewright.ir.loop.nodes import For, Func


class FakeDriver:
    """Does at once what a stream would do in order; captured work is done at every replay."""

    def __init__(self, build: ModelBuild, interpret: bool = True) -> None:
        self.interpret = interpret
        self.texts: dict[str, str] = {}
        self.kernels: dict[str, tuple[Func, tuple[str, ...]]] = {}
        for step in build.steps:
            plain = step.kernel.plain
            for x in launches(plain):
                body = For(x.number, x.grid, "grid", x.body) if x.number else x.body
                written = tuple(p.name for p in plain.params)
                func = Func(x.name, plain.params, written, body)
                self.kernels[x.name] = (func, (*step.kernel.sizes, x.loop))
                if not interpret and x.name not in self.texts:
                    self.texts[x.name] = emit_kernel(step.kernel, build.target, "f32")
        self.names: list[str] = []
        self.live: dict[int, Any] = {}
        self.captured: list[list[Any]] = []
        self.capturing: list[Any] | None = None
        self.launched: list[str] = []

    def enter(self) -> None:
        """Nothing to enter."""

    def name(self) -> str:
        return "none"

    def capability(self) -> tuple[int, int]:
        return 9, 0

    def allocate(self, size: int) -> int:
        memory = np.full(size + 256, 0xAB, np.uint8)
        start = memory.__array_interface__["data"][0]
        start += -start % 256
        self.live[start] = memory
        return start

    def free(self, address: int) -> None:
        del self.live[address]

    allocate_pinned, free_pinned = allocate, free

    def create_stream(self) -> int:
        self.live[-1] = self.live.get(-1, 0) + 1
        return 1

    def destroy_stream(self, stream: int) -> None:
        self.live[-1] -= 1

    create_event, destroy_event = create_stream, destroy_stream

    def record(self, event: int, stream: int) -> None:
        """No clock."""

    def elapsed(self, start: int, end: int) -> float:
        return 0.001

    def synchronize(self, stream: int, doing: str = "") -> None:
        """Everything is done already."""

    def upload(self, to: int, source: int, size: int, stream: int) -> None:
        ctypes.memmove(to, source, size)

    download = copy = upload

    def load_module(self, code: bytes, name: str) -> int:
        assert b".entry" in code
        return len(name)

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""

    def function(self, module: int, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def allow_shared(self, function: int, size: int, name: str) -> None:
        assert size > 0

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Any,
        stream: int,
        name: str,
    ) -> None:
        grid, threads, _ = shape
        words = [ctypes.c_int64.from_address(p).value for p in arguments]
        if self.capturing is not None:
            self.capturing.append((function, grid, threads, words))
        else:
            self._run(self.names[function], grid, threads, words)

    def begin_capture(self, stream: int) -> None:
        self.capturing = []

    def end_capture(self, stream: int) -> int:
        assert self.capturing is not None
        self.captured.append(self.capturing)
        self.capturing = None
        return len(self.captured) - 1

    def launch_graph(self, graph: int, stream: int) -> None:
        for function, *rest in self.captured[graph]:
            self._run(self.names[function], *rest)

    def destroy_graph(self, graph: int) -> None:
        self.captured[graph] = []

    def _run(self, name: str, grid: int, threads: int, words: list[int]) -> None:
        self.launched.append(name)
        if self.interpret:
            self._interpret(name, words)
        else:
            launch(self.texts[name], name, grid, threads, words)

    def _interpret(self, name: str, words: list[int]) -> None:
        func, names = self.kernels[name]
        sizes = dict(zip(names, words[len(func.params) :], strict=True))
        arrays = {}
        for p, place in zip(func.params, words, strict=False):
            count = evaluate(p.shape[0], sizes)
            raw = (ctypes.c_ubyte * (count * p.dtype.bytes)).from_address(place)
            arrays[p.name] = np.frombuffer(raw, p.dtype.numpy, count)
        run_func(func, arrays, sizes)
