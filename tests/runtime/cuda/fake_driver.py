"""A driver with no GPU behind it: memory is the host's, and so are the threads."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.codegen.gpu.host_threads import launch
from tests.codegen.gpu.host_tma import matrix
from tilewright.arith.evaluate import evaluate
from tilewright.codegen.gpu.launches import launches
from tilewright.driver.model_build import ModelBuild
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import For, Func
from tilewright.runtime.cuda.driver_failures import DriverFailures
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.prepared_launch import PreparedLaunch
from tilewright.runtime.host_memory import address


@dataclass
class _Node:
    earlier: set[int]
    function: int
    shape: tuple[int, int, int]
    words: list[int]


# Matrices that launches are told of, which may run later.
_KEPT: list[np.ndarray] = []


def _words(arguments: Arguments) -> list[int]:
    *words, step = arguments.words
    maps = [matrix(words[m.argument], m.shape, m.box) for m in arguments.matrices]
    _KEPT.extend(maps)
    return [*words, *map(address, maps), step]


class FakeDriver:
    """Does at once what a stream would do in order; a graph is done in any order that it allows."""

    number = 0

    def __init__(self, build: ModelBuild, interpret: bool = True) -> None:
        self.failures = DriverFailures(None)
        self.relaxing = 0
        self.streams: list[int] = []
        self.interpret = interpret
        self.texts: dict[str, str] = {}
        self.kernels: dict[str, tuple[Func, tuple[str, ...]]] = {}
        for step in build.steps:
            plain = step.kernel.finalized
            for x in launches(plain):
                body = For(x.block_var, x.grid, "grid", x.body) if x.block_var else x.body
                written = tuple(p.name for p in plain.params)
                func = Func(x.name, plain.params, written, body)
                self.kernels[x.name] = (func, (*step.kernel.dim_params, x.loop))
                if not interpret and x.name not in self.texts:
                    self.texts[x.name] = step.kernel.llvm
        self.names: list[str] = []
        self.together: set[str] = set()
        self.live: dict[int, Any] = {}
        self.number = 0
        self.random = random.Random(5)
        self.graphs: list[list[_Node]] = []
        self.changed: list[str] = []
        self.followed: list[tuple[int, int]] = []
        self.waited = 0
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

    def fill(self, to: int, byte: int, size: int, stream: int) -> None:
        ctypes.memset(to, byte, size)

    def l2(self) -> int:
        return 512

    def load_module(self, code: bytes, name: str) -> int:
        assert b".entry" in code
        return len(name)

    def unload_module(self, module: int) -> None:
        """Nothing was loaded."""

    def function(self, module: int, name: str, early: bool) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def set_max_dynamic_shared(self, function: int, size: int, name: str) -> None:
        assert size > 0

    def set_shared_carveout(self, function: int, name: str) -> None:
        """All memory is the same."""

    def set_cooperative(self, function: int) -> None:
        """Text is run block by block: what waits for others is interpreted, step by step."""
        self.together.add(self.names[function])

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        stream: int,
        name: str,
    ) -> None:
        self.start(self.prepared(function, shape, arguments, name), stream)

    def prepared(
        self, function: int, shape: tuple[int, int, int], arguments: Arguments, name: str
    ) -> PreparedLaunch:
        return PreparedLaunch(function, shape, arguments, name)

    def start(self, prepared: PreparedLaunch, stream: int) -> None:
        grid, threads, _ = prepared.shape
        self.streams.append(stream)
        self._run(self.names[prepared.function], grid, threads, _words(prepared.arguments))

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        self.relaxing += 1
        yield
        self.relaxing -= 1

    def create_graph(self) -> int:
        self.graphs.append([])
        self.live[-1] = self.live.get(-1, 0) + 1
        return len(self.graphs) - 1

    def add_node(self, graph: int, earlier: list[int], prepared: PreparedLaunch) -> int:
        nodes = self.graphs[graph]
        words = _words(prepared.arguments)
        nodes.append(_Node(set(earlier), prepared.function, prepared.shape, words))
        return len(nodes) - 1

    def instantiate(self, graph: int) -> int:
        return graph

    def change_node(self, ready: int, node: int, prepared: PreparedLaunch) -> None:
        self.changed.append(prepared.name)
        self.graphs[ready][node].words = _words(prepared.arguments)

    def launch_graph(self, ready: int, stream: int) -> None:
        """In an order that is allowed, and seldom that of the model."""
        nodes = self.graphs[ready]
        self.streams.append(stream)
        done: set[int] = set()
        while len(done) < len(nodes):
            able = [n for n, x in enumerate(nodes) if n not in done and x.earlier <= done]
            chosen = self.random.choice(able)
            node = nodes[chosen]
            self._run(self.names[node.function], *node.shape[:2], node.words)
            done.add(chosen)

    def destroy_graph(self, graph: int, ready: int) -> None:
        self.live[-1] -= 1
        self.graphs[graph] = []

    def memory(self) -> tuple[int, int]:
        return 0, 0

    def synchronize_all(self) -> None:
        self.waited += 1

    def wait_stream(self, stream: int, other: int) -> None:
        self.followed.append((stream, other))

    def _run(self, name: str, grid: int, threads: int, words: list[int]) -> None:
        self.launched.append(name)
        if self.interpret or name in self.together:
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
