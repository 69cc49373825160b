"""Products that leave a loop, and those that stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.hoist_from_loops import hoist_from_loops
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.infer_types import bind_dims
from tilewright.passes.manager import run_passes

T, STEP = Var("T"), Var("i")
BATCH, SIZE, UNITS = 2, 3, 4
SHAPES = {"x": (SIZE, BATCH), "m": (BATCH, UNITS), "h0": (BATCH, UNITS)}
rng = np.random.default_rng(0)
KERNEL, RECURRENT = ((rng.normal(size=(n, UNITS)) / 2).astype(np.float32) for n in (SIZE, UNITS))


def row(b: GraphBuilder, value: str, axis: int, at: Expr) -> str:
    """The slice of a tensor at an index, without that axis."""
    shape = b.type(value).shape
    starts = tuple(at if d == axis else const(0) for d in range(len(shape)))
    stops = tuple(at + 1 if d == axis else size for d, size in enumerate(shape))
    attrs = SliceAttrs(starts, stops, (1,) * len(shape), inside=True)
    cut = b.add("slice", value, attrs=attrs)
    return b.add("reshape", cut, attrs=ReshapeAttrs((*shape[:axis], *shape[axis + 1 :])))


Step = Callable[[GraphBuilder, str, str, str], str]


def loop(step: Step, axis: int = 0) -> Graph:
    """A loop over x[T, 3, 2] and m[T, 2, 4], along `axis` of x, that carries h[2, 4]."""
    sizes = [const(n) for n in SHAPES["x"]]
    sizes.insert(axis, T)
    b = GraphBuilder("body")
    h = b.input("h", tensor(F32, BATCH, UNITS))
    x, m = b.input("x", tensor(F32, *sizes)), b.input("m", tensor(F32, T, BATCH, UNITS))
    after = step(b, h, x, m)
    g = GraphBuilder("f")
    given = [g.input("h0", tensor(F32, BATCH, UNITS)), g.input("x", tensor(F32, *sizes))]
    given.append(g.input("m", tensor(F32, T, BATCH, UNITS)))
    attrs = LoopAttrs("i", T, 1)
    return g.graph(*g.add_control("loop", ["", *given], [b.graph(after, after)], attrs))


def cell(at: Expr = STEP, axis: int = 0) -> Step:
    """tanh(x[i] @ K + m[i] + h @ R), where x[i] lies transposed."""

    def step(b: GraphBuilder, h: str, x: str, m: str) -> str:
        rows = b.add("transpose", row(b, x, axis, at), attrs=TransposeAttrs((1, 0)))
        given = b.add("matmul", rows, b.constant(KERNEL))
        sums = b.add("add", given, row(b, m, 0, at))
        return b.add("tanh", b.add("add", sums, b.add("matmul", h, b.constant(RECURRENT))))

    return step


def joined(b: GraphBuilder, h: str, x: str, m: str) -> str:
    """tanh(concat(x[i], h) @ K)."""
    rows = b.add("transpose", row(b, x, 0, STEP), attrs=TransposeAttrs((1, 0)))
    both = b.add("concat", rows, h, attrs=ConcatAttrs(1))
    return b.add("tanh", b.add("matmul", both, b.constant(np.concatenate([KERNEL, RECURRENT]))))


def invariant(b: GraphBuilder, h: str, x: str, m: str) -> str:
    """tanh(h * sum(m) @ R): the sum is the same in all steps."""
    first = row(b, m, 0, const(0))
    known = b.add("matmul", first, b.constant(RECURRENT))
    return b.add("tanh", b.add("mul", h, known))


def two_indices(b: GraphBuilder, h: str, x: str, m: str) -> str:
    """Slices at different places are not slices of one thing."""
    both = b.add("add", row(b, m, 0, STEP), row(b, m, 0, T - 1 - STEP))
    return b.add("add", h, b.add("matmul", both, b.constant(RECURRENT)))


def carried_only(b: GraphBuilder, h: str, x: str, m: str) -> str:
    both = b.add("add", h, row(b, m, 0, STEP))
    return b.add("tanh", b.add("matmul", both, b.constant(RECURRENT)))


def looked_up(b: GraphBuilder, h: str, x: str, m: str) -> str:
    """An index is checked only in a step that is taken."""
    first = b.add("gather", m, b.add("dims", attrs=DimsAttrs((T - 1,), ())), attrs=GatherAttrs(0))
    return b.add("add", h, b.add("matmul", first, b.constant(RECURRENT)))


def hoisted(graph: Graph) -> tuple[Graph, list[str], list[str]]:
    """The graph after the pass, and the operators outside and inside of its loop."""
    after = run_passes(graph, (hoist_from_loops, dce), ON_CPU)
    check_types(after)
    (n,) = [n for n in after.nodes if n.op == "loop"]
    return after, ops(after.nodes), ops(n.regions[0].nodes)


def ops(nodes: tuple[Node, ...]) -> list[str]:
    return [n.op for n in nodes if n.op in ("matmul", "transpose", "concat", "add")]


def arrays(steps: int, axis: int = 0) -> dict[str, np.ndarray]:
    values = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
    x = rng.normal(size=(steps, *SHAPES["x"]))
    values |= {"x": np.moveaxis(x, 0, axis), "m": rng.normal(size=(steps, *SHAPES["m"]))}
    return {name: np.ascontiguousarray(v, np.float32) for name, v in values.items()}


CASES: dict[str, tuple[Step, int, list[str], list[str]]] = {
    "forward": (cell(), 0, ["transpose", "matmul", "add"], ["matmul", "add"]),
    "backward": (cell(T - 1 - STEP), 0, ["transpose", "matmul", "add"], ["matmul", "add"]),
    "other axis": (cell(axis=1), 1, ["transpose"] * 2 + ["matmul", "add"], ["matmul", "add"]),
    "joined": (joined, 0, ["transpose", "matmul"], ["matmul", "add"]),
}


@for_each("name", CASES)
def test_the_product_of_all_steps_is_one(name: str) -> None:
    step, axis, outside, inside = CASES[name]
    graph = loop(step, axis)
    after, *found = hoisted(graph)
    assert found == [outside, inside]
    for steps in (0, 1, 5):
        given = arrays(steps, axis)
        expected, results = run_graph(graph, given), run_graph(after, given)
        for a, b in zip(expected.values(), results.values(), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_the_compiled_loop_agrees() -> None:
    check_native(bind_dims(loop(cell()), {"T": 4}), arrays(4))


def test_a_product_that_is_the_same_in_all_steps() -> None:
    graph = loop(invariant)
    after, outside, inside = hoisted(graph)
    assert (outside, inside) == (["matmul"], [])
    given = arrays(3)
    for a, b in zip(
        run_graph(graph, given).values(), run_graph(after, given).values(), strict=True
    ):
        np.testing.assert_allclose(b, a, rtol=1e-5)


@for_each("step", [two_indices, carried_only, looked_up])
def test_what_stays(step: Step) -> None:
    graph = loop(step)
    assert hoist_from_loops(graph, ON_CPU) is graph
