from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32, I8
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK
from tilewright.target.registry import CPUS


def _negated(*shape: int, dtype=F32) -> Graph:
    g = GraphBuilder("f")
    return g.graph(g.add("neg", g.input("x", tensor(dtype, *shape))))


@for_each("sizes", [(1, 1, 1), (2, 3, 5), (3, 17, 4), (1, 40, 1)])
@for_each("name", ["transposes", "rearranged", "gathered"])
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    check(KERNELS[name](3, 17, 4), {})
    check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))


def test_small_work_stays_on_one_thread() -> None:
    (small,) = scheduled(_negated(64))
    (large,) = scheduled(_negated(PARALLEL_WORK))
    assert "parallel" not in kinds(small.func)
    assert len(kinds(large.func)["parallel"]) == 1


def test_vectors_as_wide_as_the_registers() -> None:
    for dtype in (F32, I8):
        (result,) = scheduled(_negated(640, dtype=dtype))
        assert len(kinds(result.func)["vectorize"]) == 1
    (tiny,) = scheduled(_negated(3))
    assert "vectorize" not in kinds(tiny.func)


def test_a_scalar() -> None:
    assert check(_negated(), {}) == ["injective"]


@for_each(("columns", "vectors"), [(88, 8), (96, 16), (20, 16)])
def test_rows_with_a_rest_are_not_all_guards(columns: int, vectors: int) -> None:
    """Iterations of whole vectors where some divide the columns; else their loop stays apart."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), columns))
    (result,) = scheduled(g.graph(g.add("add", x, g.input("b", tensor(F32, columns)))))
    found = [loop for loop in loops(result.func.body) if loop.kind == "vectorize"]
    assert [as_int(loop.extent) for loop in found] == [vectors]
    parallel = next(loop for loop in loops(result.func.body) if loop.kind == "parallel")
    assert (parallel.extent is Var("N")) == (columns % vectors != 0)


@for_each("width", [7, 32, 45])
def test_planes_are_read_in_vectors_and_written_side_by_side(width: int) -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 3, 5, width))
    turned = g.add("transpose", x, attrs=TransposeAttrs((1, 2, 0)))
    graph = g.graph(g.add("neg", turned))
    assert check(graph, {}) == ["injective"]
    (result,) = scheduled(graph)
    assert kinds(result.func)["unroll"]
    assert kinds(result.func)["vectorize"]


@for_each(("width", "lanes"), [(3, None), (9, 9), (16, 16), (21, 16)])
def test_lines_shorter_than_a_vector_are_one_by_themselves(width: int, lanes: int | None) -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 3, 2, 2, 4, width))
    graph = g.graph(g.add("neg", g.add("transpose", x, attrs=TransposeAttrs((0, 3, 1, 4, 2)))))
    check(graph, {}, CPUS["x86-64-v4"])
    (result,) = scheduled(graph, CPUS["x86-64-v4"])
    found = [as_int(loop.extent) for loop in loops(result.func.body) if loop.kind == "vectorize"]
    assert found == ([] if lanes is None else [lanes])


@for_each(("width", "lanes"), [(3, [6]), (7, [14]), (8, [16])])
def test_a_short_last_axis_is_a_vector(width: int, lanes: list[int]) -> None:
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, 5, width)), g.input("y", tensor(F32, 5, width))
    graph = g.graph(g.add("concat", x, y, attrs=ConcatAttrs(axis=1)))
    check(graph, {}, CPUS["x86-64-v4"])
    (result,) = scheduled(graph, CPUS["x86-64-v4"])
    found = [as_int(loop.extent) for loop in loops(result.func.body) if loop.kind == "vectorize"]
    assert found == lanes
