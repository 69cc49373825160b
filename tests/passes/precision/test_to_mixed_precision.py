from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, noted
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.ops.reduction.norm import LayerNormAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import PassContext
from tilewright.passes.precision.f16_accumulation import f16_accumulation
from tilewright.passes.precision.to_mixed_precision import (
    NAMES,
    rounded,
    to_mixed_precision,
)
from tilewright.target.registry import CPUS, resolve_gpu

HALF = CPUS["neoverse-v1"]


def _random(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return rng.standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[:-1]) ** 0.5)


def _check(graph: Graph, **sizes: int) -> Graph:
    """Lowered, it is well-formed, keeps its types, and gives what the graph gives."""
    after, decisions = noted(to_mixed_precision, graph, HALF, "fp16")
    after = f16_accumulation(dce(after, ON_CPU), PassContext(HALF, "fp16"))
    verify_graph(after)
    check_types(after)
    assert {d.precision for d in decisions} == {"fp16"}
    assert [after.types[o] for o in after.outputs] == [graph.types[o] for o in graph.outputs]
    inputs = random_inputs(graph, sizes)
    expected = run_graph(graph, inputs, sizes)[graph.outputs[0]]
    found = run_graph(after, inputs, sizes)[after.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3 * np.abs(expected).max())
    return after


def _types(graph: Graph, op: str) -> set[object]:
    found = (n.types[0] for n in graph.nodes if n.op == op)
    return {t.dtype for t in found if isinstance(t, TensorType)}


def _mlp(rows: object = 7, width: int = 96, hidden: int = 256) -> Graph:
    """Two products with an activation, a norm and a residual."""
    g = GraphBuilder("mlp")
    x = g.input("x", tensor(F32, rows, width))  # type: ignore[arg-type]
    h = g.add("gelu", g.add("add", g.add("matmul", x, g.constant(_random(width, hidden))), b(g)))
    y = g.add("matmul", h, g.constant(_random(hidden, width)))
    scale = g.constant(np.ones(width, np.float32))
    normal = g.add("layer_norm", g.add("add", y, x), scale, attrs=LayerNormAttrs(-1))
    return g.graph(normal)


def b(g: GraphBuilder) -> str:
    return g.constant(_random(256))


@for_each("rows", [1, 7, Var("N")])
def test_what_follows_a_product_is_in_f16(rows: object) -> None:
    after = _check(_mlp(rows), **({"N": 5} if isinstance(rows, Var) else {}))
    for op in ("matmul_f16acc", "add", "gelu", "layer_norm"):
        assert _types(after, op) == {F16}
    assert sum(n.op == "cast" for n in after.nodes) == 2  # the input, once; the output


def test_wide_ranges_stay_in_f32() -> None:
    g = GraphBuilder("wide")
    x = g.input("x", tensor(F32, 4, 32))
    y = g.add("matmul", x, g.constant(_random(32, 16)))
    square = g.add("mul", y, y)
    tiny = g.constant(np.array(1e-9, np.float32))
    after = _check(g.graph(g.add("sqrt", g.add("add", square, tiny))))
    assert _types(after, "mul") == _types(after, "add") == _types(after, "sqrt") == {F32}


def test_what_no_product_feeds_is_untouched() -> None:
    g = GraphBuilder("embedding")
    rows = g.input("rows", tensor(I64, 5))
    table = g.constant(_random(9, 32))
    x = g.add("relu", g.add("gather", table, rows))
    after = _check_indices(g.graph(g.add("matmul", x, g.constant(_random(32, 8)))))
    assert _types(after, "gather") == _types(after, "relu") == {F32}


def _check_indices(graph: Graph) -> Graph:
    after, _ = noted(to_mixed_precision, graph, HALF, "fp16")
    verify_graph(after)
    return after


def test_sums_that_cannot_be_cut_are_formed_in_f32() -> None:
    g = GraphBuilder("odd")
    x = g.input("x", tensor(F32, 3, 1031))
    after = _check(g.graph(g.add("matmul", x, g.constant(_random(1031, 4)))))
    assert _types(after, "matmul") == {F32}


@for_each("target", ["aarch64", "x86-64-v4"])
def test_other_machines_say_so(target: str) -> None:
    graph = _mlp()
    after, decisions = noted(to_mixed_precision, graph, CPUS[target], "fp16")
    assert after is graph
    assert {d.reason for d in decisions} == {"this machine's vectors do not compute in f16"}


def test_constants_stay_finite() -> None:
    found = rounded(np.array([1e9, -3e38, np.inf, 1.0009765625], np.float32))
    np.testing.assert_array_equal(found, np.array([65504, -65504, np.inf, 1.001], np.float16))
    assert found.dtype == np.float16


@for_each(("taps", "wide"), [(5, True), (3, False)])
def test_larger_tiles_of_winograd_may_take_less_time_in_f32(taps: int, wide: bool) -> None:
    g = GraphBuilder("lines")
    x = g.input("x", tensor(F32, 1, 256, 512, 1))
    w = g.constant(_random(512, 256, taps, 1))
    attrs = make_attrs("conv", {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)})
    graph = g.graph(g.add("conv", x, w, attrs=attrs))
    _, (decision,) = noted(to_mixed_precision, graph, HALF, "fp16")
    assert ("Winograd" in decision.reason) == wide
    assert decision.precision == ("f32" if wide else "fp16")


@for_each(("dtype", "near"), [(F16, 2e-3), (BF16, 1e-2)])
def test_both_types_on_a_gpu(dtype: DType, near: float) -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, 5, 24))
    y = g.add("matmul", x, g.constant(_random(24, 7)))
    y = g.add("relu", g.add("add", y, g.constant(_random(1, 7))))
    graph = g.graph(g.add("matmul", y, g.constant(_random(7, 9))))
    after, decisions = noted(to_mixed_precision, graph, resolve_gpu("cuda"), NAMES[dtype])
    after = dce(after, ON_CPU)
    verify_graph(after)
    check_types(after)
    assert {d.precision for d in decisions} == {NAMES[dtype]}
    assert {after.types[n.inputs[1]].dtype for n in after.nodes if n.op == "matmul"} == {dtype}
    inputs = random_inputs(graph, {})
    expected = run_graph(graph, inputs, {})[graph.outputs[0]]
    found = run_graph(after, inputs, {})[after.outputs[0]]
    assert np.linalg.norm(found - expected) < near * np.linalg.norm(expected)


def test_constants_stay_finite_in_bf16() -> None:
    big = np.array([3.4e38, -3.4e38, np.inf, 1.0], np.float32)
    assert np.isfinite(rounded(big, BF16).astype(np.float32)).tolist() == [True, True, False, True]


@pytest.mark.parametrize(("dtype", "near"), [(F16, 2e-3), (BF16, 2e-2)])
def test_recurrences_multiply_in_it_on_a_gpu_and_keep_their_states(
    dtype: DType, near: float
) -> None:
    g = GraphBuilder("steps")
    x = g.input("x", tensor(F32, 3, 2, 1, 4, 32))
    attrs = StepsAttrs(("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3)
    y, *_ = g.add_many("lstm_steps", x, g.constant(_random(32, 4, 32)), attrs=attrs)
    graph = g.graph(y)
    after, decisions = noted(to_mixed_precision, graph, resolve_gpu("cuda"), NAMES[dtype])
    check_types(after)
    (steps,) = after.nodes
    assert [after.types[i].dtype for i in steps.inputs[:2]] == [F32, dtype]
    assert [d.precision for d in decisions] == [NAMES[dtype]]
    inputs = random_inputs(graph, {})
    expected = run_graph(graph, inputs, {})[graph.outputs[0]]
    found = run_graph(after, inputs, {})[after.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=near, atol=near)
    assert to_mixed_precision(graph, PassContext(HALF, NAMES[dtype])) == graph


def test_recurrences_whose_weights_are_computed_stay_in_f32() -> None:
    g = GraphBuilder("steps")
    x = g.input("x", tensor(F32, 3, 2, 1, 1, 32))
    w = g.input("w", tensor(F32, 32, 1, 32))
    y, *_ = g.add_many("rnn_steps", x, w, attrs=StepsAttrs(("tanh",), (0.0,), (0.0,)))
    graph = g.graph(y)
    after, decisions = noted(to_mixed_precision, graph, resolve_gpu("cuda"), "fp16")
    assert after == graph
    assert [d.reason for d in decisions] == ["its weights are computed"]


T4 = resolve_gpu("cuda -arch=sm_75")


@for_each(("precision", "taken"), [("fp16", "fp16"), ("bf16", "f32")])
def test_a_gpu_takes_types_that_it_multiplies(precision: str, taken: str) -> None:
    graph = _mlp()
    after, decisions = noted(to_mixed_precision, graph, T4, precision)
    assert {d.precision for d in decisions} == {taken}
    assert _types(dce(after, ON_CPU), "matmul") == ({F16} if taken == "fp16" else {F32})
    if taken == "f32":
        assert {d.reason for d in decisions} == {"this GPU has no instruction for matrices of bf16"}


@for_each(("arch", "dtype", "said"), [("sm_75", BF16, 1), ("sm_75", F16, 0), ("sm_80", BF16, 0)])
def test_operands_that_no_instruction_multiplies_are_told(
    arch: str, dtype: DType, said: int
) -> None:
    g = GraphBuilder("product")
    operands = [g.input(name, tensor(dtype, 8, 8)) for name in "xy"]
    graph = g.graph(g.add("matmul", *operands))
    after, notes = noted(to_mixed_precision, graph, resolve_gpu(f"cuda -arch={arch}"), "f32")
    assert after is graph
    assert len(notes) == said
    assert all("CUDA cores multiply its values as f32" in str(note) for note in notes)
