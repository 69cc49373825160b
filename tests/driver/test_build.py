from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import check_native, compare, random_inputs
from tests.differential.random_models import random_model
from tilewright.arith.expr import Var, as_int, const
from tilewright.core.dtypes import F32, I64
from tilewright.driver.build import ModelBuild, compile_modules, emit_modules
from tilewright.driver.compile import compile
from tilewright.driver.compiler import lower
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.build import GraphBuilder


class _Maker(GraphBuilder):
    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def _written_while_needed(build: ModelBuild) -> list[str]:
    """Arena bytes that a step writes and a later step still reads as something older."""
    assert build.code is not None
    sizes = [[(b.shape[0], b.dtype.bytes) for b in s.kernel.plain.params] for s in build.steps]
    owner: dict[int, tuple[str, int]] = {}
    faults = []
    for number, (step, call) in enumerate(zip(build.steps, build.code.calls, strict=True)):
        names = [*(n for n in step.node.inputs if n), *step.node.outputs]
        names += [f"w{number}.{i}" for i in range(len(call.buffers) - len(names))]
        reads = len([n for n in step.node.inputs if n])
        for i, (name, place) in enumerate(zip(names, call.buffers, strict=True)):
            if place.space != "arena":
                continue
            start, count = as_int(place.offset), as_int(sizes[number][i][0])
            assert start is not None
            assert count is not None
            span = range(start, start + count * sizes[number][i][1])
            if i < reads:
                root = _root(build.graph, name)
                faults += [f"{name} at {b}" for b in span if owner.get(b, ("", 0))[0] != root][:1]
            else:
                owner.update((b, (_root(build.graph, name), number)) for b in span)
    return faults


def _root(graph: Graph, name: str) -> str:
    while (n := graph.producer.get(name)) is not None and n.op == "reshape":
        name = n.inputs[0]
    return name


@pytest.mark.parametrize("seed", range(25))
def test_a_value_that_is_still_needed_is_never_overwritten(seed: int) -> None:
    assert _written_while_needed(lower(random_model(seed, size=20), target="aarch64")) == []


def test_results_take_the_place_of_what_dies() -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 8, 8)), g.input("w", tensor(F32, 8, 8))
    h = g("matmul", x, w)
    y = g("softmax", h, axis=-1)
    z = g("matmul", g("add", h, g("softmax", y, axis=0)), w)
    build = lower(g.graph(z), target="aarch64")
    assert build.plan is not None
    assert build.plan.peak == 2 * 256  # h, which the sum overwrites, and y
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
    build = lower(g.graph(y), target="aarch64")
    assert len(build.steps) == 6
    assert len({s.kernel.name for s in build.steps}) == 2
    texts = emit_modules(build)
    assert {"tw_model", "tw_runtime", "tw_clock", "tw_call"} < set(texts)
    assert len(texts) == 6
    objects = compile_modules(texts, build.target)
    assert all(data[:4] == b"\x7fELF" for data in objects.values())


def test_inputs_constants_and_duplicates_as_outputs() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 2, 3))
    view = g("reshape", x, shape=(3, 2))
    one = g("neg", x)
    graph = g.graph(x, view, one, one, g("reshape", one, shape=(6,)))
    check_native(graph, random_inputs(graph)).close()


def test_places_of_a_symbolic_model_are_left_to_run_time() -> None:
    build = lower(KERNELS["mlp"](Var("M"), 8, 8), target="aarch64")
    assert build.plan is not None
    assert build.plan.placement is not None
    assert {b.name for b in build.buffers} == set(build.plan.offsets)
