from __future__ import annotations

import numpy as np
import pytest

from tests.ci_sample import one_in
from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import check_native, compare, random_inputs
from tests.differential.random_models import random_model
from tilewright.arith.expr import Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, I64
from tilewright.driver.artifact.entry_point import emit_modules
from tilewright.driver.compile import compile
from tilewright.driver.compile_graph import lower
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder


class _Maker(GraphBuilder):
    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def _written_while_needed(build: ModelBuild) -> list[str]:
    """Values that a step reads from the arena though some of their bytes are another's by then."""
    owner: dict[int, str] = {}
    faults = []
    for number, (step, call) in enumerate(zip(build.steps, build.code.calls, strict=True)):
        names = [*(n for n in step.node.inputs if n), *step.node.outputs]
        reads = len([n for n in step.node.inputs if n])
        for i, place in enumerate(call.buffers):
            if place.space != "arena":
                continue
            start = as_int(simplify(place.offset + place.start))
            assert start is not None
            if i >= len(names):
                count = as_int(step.kernel.finalized.params[i].shape[0])
                assert count is not None
                size = count * step.kernel.finalized.params[i].dtype.bytes
                owner.update((b, f"w{number}.{i}") for b in range(start, start + size))
                continue
            root, span = build.program.base_buffer(names[i]), _bytes(build, names[i], start)
            if i < reads:
                faults += [f"{names[i]} at {b}" for b in span if owner.get(b) != root][:1]
            else:
                owner.update((b, root) for b in span)
    return faults


def _bytes(build: ModelBuild, name: str, start: int) -> list[int]:
    """The bytes of a value that begins at `start`, whatever gaps it has."""
    t, room = build.program.types[name], build.program.strided_view(name).parent_shape
    assert isinstance(t, TensorType)
    shape, wide = ([as_int(d) or 0 for d in s] for s in (t.shape, room or t.shape))
    every = np.arange(int(np.prod(wide))).reshape(wide)[tuple(slice(n) for n in shape)]
    first = start + every.ravel() * t.dtype.bytes
    return [int(b) + k for b in first for k in range(t.dtype.bytes)]


@pytest.mark.parametrize("seed", one_in(2, range(25)))
def test_a_value_that_is_still_needed_is_never_overwritten(seed: int) -> None:
    assert (
        _written_while_needed(lower(random_model(seed, size=20), make_options(target="aarch64")))
        == []
    )


def _joined(seed: int, static: bool = True) -> Graph:
    """Layers that are joined, cut apart and joined again along several axes."""
    rng = np.random.default_rng(seed)
    g = _Maker("joined")
    rows = const(5) if static else Var("N")
    values = [g.input(f"x{i}", tensor(F32, rows, 3, 32)) for i in range(2)]
    weights = g.constant(rng.standard_normal((32, 32), dtype=np.float32) / 6)
    values += [g("matmul", values[0], weights), g("relu", values[1])]
    for _ in range(14):
        word = rng.choice(["matmul", "relu", "concat", "concat", "slice", "reshape", "both"])
        x = values[rng.integers(len(values))]
        shape = g.type(x).shape
        if word == "matmul" and shape[-1] is const(32):
            values.append(g("matmul", x, weights))
        elif word == "concat":
            axis = int(rng.integers(1, len(shape)))
            like = [v for v in values if _joins(g, v, x, axis)]
            picked = [like[rng.integers(len(like))] for _ in range(rng.integers(1, 4))]
            values.append(g("concat", x, *picked, axis=axis))
        elif word == "slice":
            starts = [0] + [int(rng.integers(int(str(d)))) for d in shape[1:]]
            values.append(g("slice", x, starts=starts, stops=shape, steps=[1] * len(shape)))
        elif word == "reshape":
            values.append(g("reshape", x, shape=(shape[0], 1, *shape[1:])))
        elif word == "both":
            values.append(g("add", x, x))
        else:
            values.append(g("relu", x))
    outputs = {values[-1], *(values[i] for i in rng.integers(2, len(values), 3))}
    return g.graph(*sorted(outputs))


def _joins(g: GraphBuilder, v: str, x: str, axis: int) -> bool:
    a, b = g.type(v).shape, g.type(x).shape
    return len(a) == len(b) and all(
        p is q for d, (p, q) in enumerate(zip(a, b, strict=True)) if d != axis
    )


@pytest.mark.parametrize("seed", one_in(4, range(40)))
def test_parts_are_computed_and_read_where_they_lie(seed: int) -> None:
    graph = _joined(seed)
    assert _written_while_needed(lower(graph, make_options(target="aarch64"))) == []
    check_native(graph, random_inputs(graph, {}, seed), scale=10)


@pytest.mark.parametrize("seed", range(6))
def test_parts_of_sizes_that_a_run_gives(seed: int) -> None:
    graph = _joined(seed, static=False)
    model = check_native(graph, random_inputs(graph, {"N": 3}, seed), scale=10)
    compare(graph, model, random_inputs(graph, {"N": 7}, seed), scale=10)


def test_results_take_the_place_of_what_dies() -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 8, 8)), g.input("w", tensor(F32, 8, 8))
    h = g("matmul", x, w)
    y = g("softmax", h, axis=-1)
    z = g("matmul", g("add", h, g("softmax", y, axis=0)), w)
    build = lower(g.graph(z), make_options(target="aarch64"))
    assert build.memory.plan is not None
    assert build.memory.plan.peak == 2 * 256  # h, which the sum overwrites, and y
    assert _written_while_needed(build) == []


def test_bytes_read_again_under_another_shape_stay() -> None:
    """`h` is read where it is written and, as a view, elsewhere: it cannot be overwritten."""
    g = _Maker("f")
    zero = const(0)
    h = g("matmul", g.input("x", tensor(F32, 8, 16)), g.input("w", tensor(F32, 16, 8)))
    view = g("reshape", h, shape=(4, 16))
    half = g("slice", view, starts=(zero, zero), stops=(const(4), const(8)), steps=(1, 1))
    total = g("add", h, g("concat", half, half, axis=0))
    graph = g.graph(g("matmul", total, g.input("v", tensor(F32, 8, 8))))
    check_native(graph, random_inputs(graph)).close()


def test_operators_given_as_loops_are_kernels() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 3, Var("N")))
    total = g("cumsum", g("neg", x), axis=1)
    values, places = g.add_many("topk", total, attrs=make_attrs("topk", {"k": const(2)}))
    graph = g.graph(g("relu", values), places, total)
    model = compile(graph, threads=1, cache=False)
    for n in (2, 3, 50):
        compare(graph, model, random_inputs(graph, {"N": n}))
    model.close()


def test_scatter_and_absent_inputs() -> None:
    g = _Maker("f")
    x, i = g.input("x", tensor(F32, 5, 4)), g.input("i", tensor(I64, 2, 4))
    u = g.input("u", tensor(F32, 2, 4))
    y = g("scatter_elements", g("tanh", x), i, u, axis=0, reduction="add")
    graph = g.graph(g("clip", y, "", g.input("top", tensor(F32))))
    inputs = random_inputs(graph)
    inputs["i"] = abs(inputs["i"]) % 5
    check_native(graph, inputs).close()


def test_equal_kernels_are_compiled_once() -> None:
    g = _Maker("f")
    y = g.input("x", tensor(F32, 8, 8))
    for _ in range(3):
        y = g("softmax", g("softmax", y, axis=-1), axis=0)
    build = lower(g.graph(y), make_options(target="aarch64"))
    assert len(build.steps) == 6
    assert len({s.kernel.name for s in build.steps}) == 2
    texts = emit_modules(build)
    assert {"tw_model", "tw_runtime", "tw_clock", "tw_call"} < set(texts)
    assert len(texts) == 6


def test_inputs_constants_and_duplicates_as_outputs() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3))
    view = g("reshape", x, shape=(3, 2))
    one = g("neg", x)
    graph = g.graph(x, view, one, one, g("reshape", one, shape=(6,)))
    check_native(graph, random_inputs(graph)).close()


def test_places_of_a_symbolic_model_are_left_to_run_time() -> None:
    build = lower(KERNELS["mlp"](Var("M"), 8, 8), make_options(target="aarch64"))
    assert build.memory.plan is not None
    assert build.memory.plan.placement is not None
    assert {b.name for b in build.memory.live_ranges} == set(build.memory.plan.offsets)
