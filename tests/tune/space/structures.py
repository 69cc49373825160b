"""The kinds of kernels that spaces of schedules are tested on, and the check of drawn schedules."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import assert_close, outputs_of, random_inputs
from tests.finalize.kernel_steps import run
from tests.finalize.kernel_steps import sample as random_arguments
from tests.schedule.builtin.gpu.gemm.test_tensor_core import on_threads
from tests.schedule.builtin.gpu.scheduled import H200, compare
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F16, F32, DType
from tilewright.driver.compile_graph import compile_source
from tilewright.driver.options import CompileOptions
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.runtime.cpu.executable import Executable
from tilewright.schedule.analysis.blocks import op_count
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.target import Target
from tilewright.tune.space.schedule_space import ScheduleSpace
from tilewright.tune.space.variation import sample

MakeSpace = Callable[[Func, frozenset[str], Target], ScheduleSpace]


def attention() -> Graph:
    """Scores, softmax and weighted values in one kernel."""
    g = GraphBuilder("attention")
    q, v = g.input("q", tensor(F32, 2, 9, 16)), g.input("v", tensor(F32, 2, 37, 16))
    k = g.input("k", tensor(F32, 2, 37, 16))
    turned = g.add("transpose", k, attrs=make_attrs("transpose", {"perm": (0, 2, 1)}))
    scores = g.add("mul", g.add("matmul", q, turned), g.constant(np.float32(0.25)))
    return g.graph(g.add("matmul", g.add("softmax", scores), v))


def elementwise() -> Graph:
    g = GraphBuilder("elementwise")
    x, y = g.input("x", tensor(F32, 37, 129)), g.input("y", tensor(F32, 129))
    return g.graph(g.add("tanh", g.add("add", g.add("exp", g.add("neg", x)), y)))


STRUCTURES: dict[str, Callable[[], Graph]] = {
    "gemm": lambda: KERNELS["dense"](37, 53, 72),
    "deep gemm": lambda: KERNELS["matmul"](24, 24, 1536),
    "gemv": lambda: KERNELS["matmul"](1, 67, 96),
    "conv": lambda: KERNELS["conv"](11, 12, 20),
    "pointwise conv": lambda: KERNELS["pointwise_conv"](13, 24, 20),
    "depthwise": lambda: KERNELS["depthwise"](12, 16, 0),
    "bmm": lambda: KERNELS["batched_matmul"](19, 21, 32),
    "softmax": lambda: KERNELS["softmax"](23, 77, 0),
    "softmax columns": lambda: KERNELS["softmax_columns"](5, 9, 40),
    "layernorm": lambda: KERNELS["layer_norm"](17, 96, 0),
    "row sums": lambda: KERNELS["sum_rows"](9, 33, 130),
    "column maxima": lambda: KERNELS["max_columns"](23, 7, 44),
    "transpose": lambda: KERNELS["transposes"](6, 33, 50),
    "elementwise": elementwise,
    "pooling": lambda: KERNELS["max_pool"](9, 20, 0),
    "attention": attention,
}


def product(m: int, n: int, k: int, dtype: DType) -> Graph:
    """A matrix product of two inputs, and a bias."""
    g = GraphBuilder("product")
    a, b = g.input("a", tensor(dtype, m, k)), g.input("b", tensor(dtype, k, n))
    return g.graph(g.add("add", g.add("matmul", a, b), g.input("c", tensor(dtype, n))))


# What GPUs have rules of their own for.
GPU_STRUCTURES: dict[str, Callable[[], Graph]] = {
    "gemm": lambda: product(70, 72, 80, F16),
    "f32 gemm": lambda: product(37, 48, 72, F32),
    "long sum": lambda: KERNELS["sum_all"](9, 130, 130),
    **{
        name: STRUCTURES[name]
        for name in ("conv", "depthwise", "softmax", "layernorm", "transpose", "elementwise")
    },
}

# Enough to see that a space works; all of them take a while.
FEW = ("gemm", "depthwise", "softmax", "transpose")


def func_of(name: str) -> tuple[Func, frozenset[str]]:
    """The kernel of a structure, and which of its parameters are constants."""
    found = sources(STRUCTURES[name]())
    return max(found, key=lambda source: sum(op_count(b) for b in blocks(source[0].body)))


class Draws:
    """Schedules of kernels drawn from spaces, each checked; what was drawn is kept for messages."""

    def __init__(self, make: MakeSpace, seed: int, legality: bool) -> None:
        self.make = make
        self.legality = legality
        self.rng = Random(seed)
        self.drawn: list[str] = []

    def __call__(self, func: Func, constants: frozenset[str], target: CpuTarget) -> ScheduledFunc:
        space = self.make(func, constants, target)
        candidate = sample(space, self.rng)
        assert candidate is not None
        if self.legality:
            space.check(candidate)
        text = space.text(candidate)
        self.drawn.append(text)
        assert space.parse(text) == candidate
        return space.scheduled(candidate)


def check_draws(name: str, make: MakeSpace, seeds: range, legality: bool = False) -> None:
    """Drawn schedules of a structure, as machine code, compute what the interpreter does."""
    graph = STRUCTURES[name]()
    inputs = random_inputs(graph)
    expected = run_graph(graph, inputs)
    for seed in seeds:
        draws = Draws(make, seed, legality)
        container = compile_source(graph, CompileOptions(host(), schedules=draws)).container()
        with Executable(container, threads=2) as model:
            found = outputs_of(model, {k: v.copy() for k, v in inputs.items()})
        for output, array in zip(graph.outputs, found, strict=True):
            try:
                assert_close(array, expected[output], graph.tensor_type(output).dtype, scale=8)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}:\n" + "\n".join(draws.drawn)) from error


def check_gpu_draws(name: str, make: MakeSpace, seeds: range) -> None:
    """Drawn schedules of a structure for a GPU compute the same, as loops and as emitted code."""
    for func, constants in sources(GPU_STRUCTURES[name](), H200):
        arrays = random_arguments(func, {})
        expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
        space = make(func, constants, H200)
        for seed in seeds:
            candidate = sample(space, Random(seed))
            assert candidate is not None
            assert space.parse(space.text(candidate)) == candidate
            drawn = space.func(candidate)
            try:
                compare(run(drawn, arrays, {}), expected)
                on_threads(func, drawn, {}, arrays)
            except Exception as error:
                raise AssertionError(f"seed {seed}:\n{space.text(candidate)}") from error
