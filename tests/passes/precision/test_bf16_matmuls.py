from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, noted
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.recurrent.cells import StepsAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.fuse import fuse
from tilewright.passes.precision.bf16_matmuls import bf16_matmuls
from tilewright.target.registry import CPUS

AMX = CPUS["sapphirerapids"]


def _random(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return rng.standard_normal(shape, dtype=np.float32) / np.float32(np.prod(shape[:-1]) ** 0.5)


def _mlp(rows: object = 64, width: int = 96, hidden: int = 128) -> Graph:
    """Two products with an activation between them, and a residual."""
    g = GraphBuilder("mlp")
    x = g.input("x", tensor(F32, rows, width))  # type: ignore[arg-type]
    h = g.add("relu", g.add("matmul", x, g.constant(_random(width, hidden))))
    y = g.add("matmul", h, g.constant(_random(hidden, width)))
    return g.graph(g.add("add", y, x))


def _conv(channels: int = 32, kernel: int = 3, size: int = 8, **attrs: object) -> Graph:
    settings = {
        "strides": (1, 1),
        "pads": (kernel // 2,) * 4,
        "dilations": (1, 1),
        "layout": "channels_last",
        **attrs,
    }
    shape = (2, size, size, channels)
    if settings["layout"] == "channels_first":
        shape = (2, channels, size, size)
    g = GraphBuilder("convolution")
    x = g.input("x", tensor(F32, *shape))
    groups = settings.get("groups", 1)
    w = _random(40, channels // int(groups), kernel, kernel)  # type: ignore[call-overload]
    y = g.add("conv", x, g.constant(w), attrs=ConvAttrs(**settings))  # type: ignore[arg-type]
    return g.graph(g.add("relu", y))


def _check(graph: Graph, **sizes: int) -> Graph:
    """Lowered, it is well-formed and gives what the graph gives, to the precision of bf16."""
    after, decisions = noted(bf16_matmuls, graph, AMX, "bf16")
    verify_graph(after)
    check_types(after)
    assert {d.precision for d in decisions} == {"bf16"}
    inputs = random_inputs(graph, sizes)
    expected = run_graph(graph, inputs, sizes)[graph.outputs[0]]
    found = run_graph(after, inputs, sizes)[after.outputs[0]]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=1e-2 * scale)
    with compile(fuse(after, ON_CPU), cache=False, threads=2) as model:
        native = model.run(inputs)[graph.outputs[0]]
    # Sums in another order may round an operand of the next product to its neighbour.
    np.testing.assert_allclose(native, found, rtol=1e-2, atol=1e-2 * scale)
    return after


@pytest.mark.parametrize(("rows", "width"), [(64, 96), (33, 100), (20, 160)])
def test_products(rows: int, width: int) -> None:
    after = _check(_mlp(rows, width))
    assert [n.op for n in after.nodes].count("matmul_f32out") == 2


def test_symbolic_rows() -> None:
    """How many samples there are counts as one, other sizes as many."""
    g = GraphBuilder("sequences")
    x = g.input("x", tensor(F32, Var("N"), Var("S"), 96))
    _check(g.graph(g.add("matmul", x, g.constant(_random(96, 64)))), N=2, S=5)
    assert all("too few" in reason for reason in _reasons(_mlp(Var("N"))))


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("strides", [(1, 1), (2, 2)])
@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
def test_convolutions(kernel: int, strides: tuple[int, int], layout: str) -> None:
    channels = 96 if kernel == 1 else 32
    after = _check(_conv(channels, kernel, strides=strides, layout=layout, size=28))
    windows = kernel > 1 or strides != (1, 1)
    assert ("im2col" in {n.op for n in after.nodes}) == windows


def test_dilated_and_odd_ones() -> None:
    _check(_conv(dilations=(2, 2)))
    _check(_conv(channels=112, kernel=1, size=15))


@pytest.mark.parametrize(
    ("channels", "kernel", "settings"),
    [
        (3, 7, {"strides": (2, 2), "layout": "channels_first"}),
        (12, 3, {"strides": (2, 2), "pads": (0, 0, 1, 1), "size": 49}),
        (24, 3, {"size": 12, "dilations": (2, 1)}),
    ],
)
def test_few_channels_are_windows_of_whole_lines(
    channels: int, kernel: int, settings: dict[str, object]
) -> None:
    after = _check(_conv(channels, kernel, **{"size": 20, **settings}))  # type: ignore[arg-type]
    (windows,) = (n for n in after.nodes if n.op == "im2col")
    assert windows.attrs.line % 32 == 0 < windows.attrs.line  # type: ignore[attr-defined]


def test_steps_of_recurrences() -> None:
    g = GraphBuilder("steps")
    x = g.input("x", tensor(F32, 3, 1, 1, 4, 32))
    attrs = StepsAttrs(("sigmoid", "tanh", "tanh"), (0.0,) * 3, (0.0,) * 3)
    y, *_ = g.add_many("lstm_steps", x, g.constant(_random(32, 4, 32)), attrs=attrs)
    graph = g.graph(y)
    after = _check(graph)
    assert BF16 in {after.types[i].dtype for n in after.nodes for i in n.inputs if i}
    assert _reasons(graph, "aarch64") == ["this machine multiplies f32 as fast"]


def test_weights_are_rounded_when_compiled_and_values_once() -> None:
    g = GraphBuilder("shared")
    x = g.input("x", tensor(F32, 64, 96))
    a, b = (g.add("matmul", x, g.constant(_random(96, 64) * n)) for n in (1, 2))
    after, _ = noted(bf16_matmuls, g.graph(a, b), AMX, "bf16")
    assert [n.op for n in after.nodes].count("cast") == 1
    assert {c.type.dtype for c in after.constants if c.data.ndim == 2} >= {BF16}


def test_activations_travel_in_bf16_where_only_products_read_them() -> None:
    after, _ = noted(bf16_matmuls, _mlp(), AMX, "bf16")
    first, second = (
        n for n in fuse(after, ON_CPU).nodes if "matmul_f32out" in {m.op for m in _group(n)}
    )
    assert first.type.dtype == BF16
    assert second.type.dtype == F32


def _group(n: object) -> tuple:
    return n.regions[0].nodes  # type: ignore[attr-defined, no-any-return]


def test_a_change_of_shape_comes_after_the_rounding() -> None:
    g = GraphBuilder("reshaped")
    x = g.input("x", tensor(F32, 64, 2, 48))
    flat = g.add("reshape", g.add("relu", x), attrs=ReshapeAttrs(tensor(F32, 64, 96).shape))
    graph = g.graph(g.add("matmul", flat, g.constant(_random(96, 64))))
    after, _ = noted(bf16_matmuls, graph, AMX, "bf16")
    ops = [n.op for n in after.nodes]
    assert ops.index("cast") < len(ops) - ops[::-1].index("reshape") - 1
    kernels = [n for n in fuse(dce(after, ON_CPU), ON_CPU).nodes if n.op == "fused"]
    rounded = [n for n in kernels if n.type.dtype == BF16]
    assert [m.op for m in _group(rounded[0])] == ["relu", "cast"]


def _reasons(graph: Graph, machine: str = "sapphirerapids") -> list[str]:
    after, decisions = noted(bf16_matmuls, graph, CPUS[machine], "bf16")
    stayed = [d for d in decisions if d.precision == "f32"]
    assert (after is graph) == (len(stayed) == len(decisions))
    return [d.reason for d in stayed]


@for_each(
    ("graph", "machine", "reason"),
    [
        (_mlp(4, 16, 16), "sapphirerapids", "too few to pay"),
        (_conv(channels=3, kernel=7, dilations=(1, 2)), "sapphirerapids", "whole vectors"),
        (_conv(channels=40, groups=40), "sapphirerapids", "40 groups"),
        (_mlp(4, 256, 64), "sapphirerapids", "vectors of f32 take no longer"),
        (_conv(), "neoverse-v1", "no unit for matrices"),
        (_mlp(), "x86-64-v4", "multiplies f32 as fast"),
        (_mlp(1, 512, 512), "x86-64-v4", "stay in the cache"),
    ],
)
def test_what_stays_in_f32_has_a_reason(graph: Graph, machine: str, reason: str) -> None:
    reasons = _reasons(graph, machine)
    assert reasons
    assert all(reason in r for r in reasons)


def test_computed_operands_stay() -> None:
    g = GraphBuilder("both")
    x, y = g.input("x", tensor(F32, 64, 64)), g.input("y", tensor(F32, 64, 64))
    assert _reasons(g.graph(g.add("matmul", x, y))) == ["both operands are computed"]


def test_one_row_gains_where_its_weights_come_from_memory() -> None:
    small = replace(CPUS["aarch64"], l3=1024)
    _, decisions = noted(bf16_matmuls, _mlp(1, 512, 512), small, "bf16")
    assert {d.precision for d in decisions} == {"bf16"}
    assert "half the size" in str(decisions[0])
