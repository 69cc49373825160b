from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.differential.native import random_inputs
from tests.differential.random_models import random_model
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tests.passes.random_graphs import SEEDS, random_graph
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import FusedAttrs, Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.conv.im2col import Im2ColAttrs
from tilewright.ops.conv.winograd import WinogradAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.context import PassContext, WhyNotFused
from tilewright.passes.fuse import MAX_NODES, MAX_OPERATIONS, MAX_READS, fuse

WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "layout": "channels_last"}


class _Maker(GraphBuilder):
    def __call__(self, op: str, *inputs: str, **values: object) -> str:
        return self.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def groups(graph: Graph) -> list[tuple[str, list[str]]]:
    """Kind and operators of every group; what stands alone has its own name for kind."""
    return [
        (n.attrs.kind, [m.op for m in n.regions[0].nodes])
        if isinstance(n.attrs, FusedAttrs)
        else (n.op, [])
        for n in graph.nodes
    ]


def reported(graph: Graph) -> tuple[Graph, list[WhyNotFused]]:
    """The fused graph, and the pairs that were not fused."""
    context = PassContext(ON_CPU.target)
    return fuse(graph, context), context.log.not_fused


def reasons(not_fused: list[WhyNotFused]) -> list[str]:
    return [pair.reason for pair in not_fused]


def unfused(graph: Graph) -> Graph:
    """The nodes of all groups again, under the names that they have outside."""
    nodes = []
    constants = list(graph.constants)
    for number, n in enumerate(graph.nodes):
        if not n.regions:
            nodes.append(n)
            continue
        (body,) = n.regions
        names = dict(zip((v.name for v in body.inputs), n.inputs, strict=True))
        names |= dict(zip(body.outputs, n.outputs, strict=True))
        for c in body.constants:
            names[c.name] = f"{c.name}.{number}"
            constants.append(type(c)(names[c.name], c.type, c.data))
        for m in body.nodes:
            for name in m.outputs:
                names.setdefault(name, f"{name}.{number}")
        nodes += [
            type(m)(
                m.op,
                tuple(names[i] if i else "" for i in m.inputs),
                tuple(names[o] for o in m.outputs),
                m.types,
                m.attrs,
            )
            for m in body.nodes
        ]
    return Graph(graph.name, graph.inputs, tuple(constants), tuple(nodes), graph.outputs)


@for_each("seed", range(30))
def test_groups_of_random_models_keep_order_and_meaning(seed: int) -> None:
    """`verify_graph` refuses a value that is read before it is made, so a cycle would show."""
    before = dce(decompose(random_model(seed), ON_CPU), ON_CPU)
    after = fuse(before, ON_CPU)
    verify_graph(after)
    flat = unfused(after)
    verify_graph(flat)
    assert sorted(n.op for n in flat.nodes) == sorted(n.op for n in before.nodes)
    inputs = random_inputs(before)
    expected, found = run_graph(before, inputs), run_graph(flat, inputs)
    for name in before.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


@for_each("seed", SEEDS)
def test_random_graphs_are_in_order(seed: int) -> None:
    after = fuse(dce(decompose(random_graph(seed), ON_CPU), ON_CPU), ON_CPU)
    verify_graph(after)
    verify_graph(unfused(after))


def test_a_product_takes_its_epilogue_and_reads_through_layouts() -> None:
    g = _Maker("f")
    x, w, b = (g.input(n, tensor(F32, *s)) for n, s in (("x", (4, 8)), ("w", (6, 8)), ("b", (6,))))
    y = g("matmul", x, g("transpose", w, perm=(1, 0)))
    after, not_fused = reported(g.graph(g("relu", g("add", y, b))))
    assert groups(after) == [("out_fusable", ["transpose", "matmul", "add", "relu"])]
    assert not_fused == []
    assert after.nodes[0].inputs == ("w", "x", "b")


def test_reductions_take_prologue_and_epilogue() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 4, 8))
    y = g("exp", g("softmax", g("neg", x), axis=-1))
    assert groups(fuse(g.graph(y), ON_CPU)) == [("reduction", ["neg", "softmax", "exp"])]


def test_a_value_needed_elsewhere_is_computed_once() -> None:
    g = _Maker("f")
    h = g("tanh", g.input("x", tensor(F32, 4, 8)))
    after, not_fused = reported(g.graph(g("neg", h), g("relu", h)))
    assert groups(after) == [("injective", [op]) for op in ("tanh", "neg", "relu")]
    assert reasons(not_fused) == ["the value of tanh is needed elsewhere"] * 2
    assert "tanh" in str(not_fused[0])


def test_an_output_is_not_hidden_in_a_group() -> None:
    g = _Maker("f")
    h = g("tanh", g.input("x", tensor(F32, 4)))
    assert len(fuse(g.graph(h, g("neg", h)), ON_CPU).nodes) == 2


def test_two_anchors_do_not_meet() -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 4, 8)), g.input("w", tensor(F32, 8, 8))
    y = g("softmax", g("matmul", x, w), axis=-1)
    z = g("add", y, g("matmul", x, w))
    after, not_fused = reported(g.graph(z))
    assert [kind for kind, _ in groups(after)] == ["out_fusable", "out_fusable", "reduction"]
    assert all("one anchor" in r for r in reasons(not_fused))


def test_work_is_not_repeated_for_every_use_in_a_product() -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 4, 8)), g.input("w", tensor(F32, 8, 6))
    after, not_fused = reported(g.graph(g("matmul", g("exp", x), w)))
    assert len(after.nodes) == 2
    assert reasons(not_fused) == ["exp would be computed again for every use in matmul"]


@for_each(("rows", "apart"), [(const(64), False), (const(2), True), (Var("B"), True)])
def test_rows_of_a_product_are_next_to_each_other(rows: Expr, apart: bool) -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, rows, 30, 16)), g.constant(np.ones((16, 24), np.float32))
    fused, not_fused = reported(g.graph(g("matmul", g("transpose", x, perm=(1, 0, 2)), w)))
    together = [("out_fusable", ["transpose", "matmul"])]
    alone = [("injective", ["transpose"]), ("out_fusable", ["matmul"])]
    assert groups(fused) == (alone if apart else together)
    assert reasons(not_fused) == ["matmul would compute few rows at a time"] * apart


def test_an_epilogue_has_the_shape_of_the_tiles() -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 4, 8)), g.input("w", tensor(F32, 8, 6))
    y = g("matmul", x, w)
    turned = g("transpose", y, perm=(1, 0))
    wide = g("add", g("matmul", x, w), g.input("z", tensor(F32, 3, 4, 6)))
    _, not_fused = reported(g.graph(turned, wide))
    assert any("transpose would scatter the tiles of matmul" in r for r in reasons(not_fused))
    assert any("add changes the shape" in r for r in reasons(not_fused))


@for_each("side", [20, 200])
def test_a_large_convolution_transposes_its_own_result(side: int) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, side, side, 4))
    y = g("conv", x, g.input("w", tensor(F32, 32, 4, 1, 1)), **WINDOW)
    moved = g("transpose", g("relu", y), perm=(0, 3, 1, 2))
    after = fuse(g.graph(g("exp", moved)), ON_CPU)
    apart = [["conv", "relu"], ["transpose", "exp"]]
    assert ON_CPU.target.l2 // 2 < 200 * 200 * 32 * 4
    together = [["conv", "relu", "transpose", "exp"]]
    assert [ops for _, ops in groups(after)] == (together if side == 200 else apart)


@for_each("filters", [8, 32])
def test_a_large_convolution_in_groups_transposes_its_own_result(filters: int) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 200, 200, 2, 4))
    window = {"strides": (1,) * 3, "pads": (0,) * 6, "dilations": (1,) * 3}
    w = g.input("w", tensor(F32, 2, filters, 4, 1, 1))
    y = g("group_conv", x, w, **window, layout="channels_last")
    after = fuse(g.graph(g("transpose", y, perm=(0, 3, 4, 1, 2))), ON_CPU)
    # a few filters fill no vector of what is transposed
    together = filters >= ON_CPU.target.lanes(32)
    expected = [["group_conv", "transpose"]] if together else [["group_conv"], ["transpose"]]
    assert [ops for _, ops in groups(after)] == expected


@for_each("perms", [[(0, 2, 3, 1)], [(0, 1, 3, 2), (0, 2, 3, 1)]])
def test_a_large_convolution_may_also_read_what_is_transposed(perms: list[tuple[int, ...]]) -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 4, 200, 200))
    for perm in perms:
        x = g("transpose", x, perm=perm)
    padded = {**WINDOW, "pads": (1, 1, 1, 1)}
    y = g("conv", x, g.input("w", tensor(F32, 32, 4, 3, 3)), **padded)
    moved = g("exp", g("transpose", y, perm=(0, 3, 1, 2)))
    after = fuse(g.graph(g("transpose", moved, perm=(0, 2, 3, 1))), ON_CPU)
    reads = ["transpose"] * len(perms)
    assert [ops for _, ops in groups(after)] == [
        [*reads, "conv", "transpose", "exp"],
        ["transpose"],
    ]


@for_each(("context", "together"), [(ON_CPU, True), (ON_GPU, False)])
def test_a_gpu_pads_where_it_reads_so_transposes_stay_apart(
    context: PassContext, together: bool
) -> None:
    g = _Maker("f")
    x = g("transpose", g.input("x", tensor(F32, 1, 4, 20, 20)), perm=(0, 2, 3, 1))
    padded = {**WINDOW, "pads": (1, 1, 1, 1)}
    after = fuse(g.graph(g("conv", x, g.input("w", tensor(F32, 32, 4, 3, 3)), **padded)), context)
    found = [ops for _, ops in groups(after)]
    assert found == ([["transpose", "conv"]] if together else [["transpose"], ["conv"]])


@for_each(("context", "together"), [(ON_CPU, True), (ON_GPU, False)])
def test_products_on_a_gpu_read_transposed_values_where_they_lie(
    context: PassContext, together: bool
) -> None:
    g = _Maker("f")
    x, w = g.input("x", tensor(F32, 16, 32)), g("exp", g.input("w", tensor(F32, 24, 32)))
    after = fuse(g.graph(g("matmul", x, g("transpose", w, perm=(1, 0)))), context)
    found = [ops for _, ops in groups(after)]
    apart = [["exp"], ["transpose", "matmul"]]
    assert found == ([["exp", "transpose"], ["matmul"]] if together else apart)


def test_views_and_opaque_operators_stand_alone() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 4, 8))
    y = g("reshape", g("neg", x), shape=(const(32),))
    z = g("cumsum", y, axis=0)
    after, not_fused = reported(g.graph(g("neg", z)))
    assert [kind for kind, _ in groups(after)] == ["injective", "reshape", "cumsum", "injective"]
    assert reasons(not_fused) == ["reshape is view", "cumsum is opaque", "cumsum is opaque"]


def test_scalar_constants_are_part_of_the_group_and_equal_groups_are_equal() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 4, 8))
    half = g.constant(np.array(0.5, "f4"))
    one = g("mul", x, half)
    two = g("mul", g("cumsum", one, axis=0), half)
    first, _, second = fuse(g.graph(g("cumsum", two, axis=1), one), ON_CPU).nodes[:3]
    assert first.inputs == ("x",)
    assert first.regions[0].constants[0].data == 0.5
    assert [n.op for n in first.regions[0].nodes] == [n.op for n in second.regions[0].nodes]
    assert [v.name for v in first.regions[0].inputs] == [v.name for v in second.regions[0].inputs]


def test_windows_stay_with_the_product_that_packs_them() -> None:
    g = GraphBuilder("convolution")
    x = g.input("x", tensor(F32, 1, 8, 8, 32))
    low = g.add("cast", x, attrs=make_attrs("cast", {"to": "bf16"}))
    where = Im2ColAttrs((1, 1), (1, 1, 1, 1), (1, 1), "channels_last", (3, 3), 288)
    rows = g.add("im2col", low, attrs=where)
    y = g.add("matmul_f32out", rows, g.constant(np.zeros((288, 8), ml_dtypes.bfloat16)))
    fused, not_fused = reported(g.graph(y))
    assert groups(fused) == [("injective", ["cast"]), ("out_fusable", ["im2col", "matmul_f32out"])]
    assert "im2col is packed by the product that reads it" in reasons(not_fused)


def test_what_is_read_many_times_is_computed_once() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 32, 8, 8))
    attrs = WinogradAttrs((4, 4), (3, 3), (1, 1), (const(8), const(8)))
    moved = g("transpose", g("gelu", x), perm=(0, 2, 3, 1))
    after, not_fused = reported(g.graph(g.add("winograd_input", moved, attrs=attrs)))
    assert [ops for _, ops in groups(after)] == [["gelu", "transpose"], ["winograd_input"]]
    assert reasons(not_fused) == ["gelu would be computed again for every use in winograd_input"]
    g = _Maker("f")
    x = g.input("x", tensor(F32, 1, 32, 8, 8))
    moved = g("transpose", g("neg", x), perm=(0, 2, 3, 1))
    after = fuse(g.graph(g.add("winograd_input", moved, attrs=attrs)), ON_CPU)
    assert [ops for _, ops in groups(after)] == [["neg", "transpose", "winograd_input"]]


def test_long_chains_are_cut() -> None:
    g = _Maker("f")
    y = g.input("x", tensor(F32, 8))
    for _ in range(2 * MAX_NODES):
        y = g("neg", y)
    after, not_fused = reported(g.graph(y))
    assert [len(n.regions[0].nodes) for n in after.nodes] == [MAX_NODES, MAX_NODES]
    assert [r.reason for r in not_fused] == [f"a kernel computes at most {MAX_NODES} operators"]


def test_long_chains_of_many_operations_are_cut_earlier() -> None:
    g = _Maker("f")
    y = g.input("x", tensor(F32, 8))
    for _ in range(40):
        y = g("sin", y)
    graph = g.graph(y)
    after, not_fused = reported(graph)
    assert len(after.nodes) == -(-40 // (MAX_OPERATIONS // 15)), "a sine has 15 operations"
    assert {r.reason for r in not_fused} == {
        f"a kernel computes at most {MAX_OPERATIONS} operations on an element"
    }
    x = np.linspace(-3, 3, 8, dtype=np.float32)
    with compile(graph, cache=False) as model:
        np.testing.assert_allclose(model(x), run_graph(graph, {"x": x})[y], rtol=1e-5)


def test_a_kernel_reads_a_bounded_number_of_values() -> None:
    g = _Maker("f")
    values = [g.input(f"x{i}", tensor(F32, 8)) for i in range(3 * MAX_READS)]
    halves = [g.add("concat", *values[i::2], attrs=ConcatAttrs(0)) for i in range(2)]
    after, _ = reported(g.graph(g.add("concat", *halves, attrs=ConcatAttrs(0))))
    assert [len(n.inputs) for n in after.nodes] == [len(values) // 2, len(values) // 2, 2]
    verify_graph(after)


def test_a_kernel_chooses_among_few_parts_though_they_are_one_value() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 8))
    pieces = [g.add("concat", *[x] * MAX_READS, attrs=ConcatAttrs(0)) for _ in range(2)]
    after, not_fused = reported(g.graph(g.add("concat", *pieces, attrs=ConcatAttrs(0))))
    assert len(after.nodes) == 3
    reason = f"a kernel reads, and chooses among, at most {MAX_READS} values"
    assert set(reasons(not_fused)) == {reason}


def test_an_epilogue_reads_the_elements_that_it_writes() -> None:
    g = _Maker("f")
    x = g.input("x", tensor(F32, 7, 33))
    turned = g("reverse", g("reduce_sum", x, axes=(0,), keepdims=False), axes=(0,))
    after, not_fused = reported(g.graph(turned))
    assert len(after.nodes) == 2
    assert reasons(not_fused) == ["reverse reads other elements of reduce_sum than it writes"]
