from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import BF16, BOOL, F32, F64, I8, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.target.registry import CPUS


def _transposed(shape: tuple[object, ...], perm: tuple[int, ...], dtype: DType = F32) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *shape))  # type: ignore[arg-type]
    return g.graph(g.add("transpose", x, attrs=TransposeAttrs(perm)))


SHAPES = [
    ((8, 8), (1, 0)),
    ((67, 101), (1, 0)),
    ((33, 16), (1, 0)),
    ((5, 131), (1, 0)),
    ((2, 9, 20), (0, 2, 1)),
    ((6, 5, 12), (2, 0, 1)),
    ((3, 50, 4), (2, 1, 0)),
    ((2, 3, 17, 18), (0, 2, 3, 1)),
    ((2, 40, 7), (0, 2, 1)),
    ((2, 3001, 7), (0, 2, 1)),
    ((1, 700, 35), (0, 2, 1)),
    ((2, 1009, 65), (0, 2, 1)),
]


@pytest.mark.parametrize(("shape", "perm"), SHAPES)
def test_machine_code(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    graph = _transposed(shape, perm)
    check_native(graph, random_inputs(graph)).close()


@pytest.mark.parametrize("dtype", [BF16, F64, I8, BOOL])
def test_other_types(dtype: DType) -> None:
    graph = _transposed((37, 50), (1, 0), dtype)
    check_native(graph, random_inputs(graph)).close()


@for_each(("shape", "perm"), SHAPES[:5])
def test_the_schedule_keeps_the_meaning(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    check(_transposed(shape, perm), {})


def test_symbolic_sizes() -> None:
    graph = _transposed((Var("M"), Var("N")), (1, 0))
    check(graph, {"M": 21, "N": 34})
    inputs = {"x": np.random.default_rng(0).random((21, 34), np.float32)}
    check_native(graph, inputs).close()


@pytest.mark.parametrize("dtype", [F32, I8, F64])
@pytest.mark.parametrize("sizes", [("M", "N"), ("M", 37), (37, "N")])
def test_symbolic_sizes_short_and_long(sizes: tuple[str | int, ...], dtype: DType) -> None:
    rows, columns = (Var(s) if isinstance(s, str) else s for s in sizes)
    graph = _transposed((rows, columns), (1, 0), dtype)
    whole = {"M": 37, "N": 37}
    model = check_native(graph, {"x": _random(tuple(whole.get(s, s) for s in sizes), dtype)})
    for length in (0, 1, 3, 4, 15, 16, 18, 64, 129):
        x = _random(tuple(length if isinstance(s, str) else s for s in sizes), dtype)
        np.testing.assert_array_equal(model(x), x.T)
    model.close()


def _random(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return (np.random.default_rng(0).random(shape) * 100).astype(dtype.numpy)


@for_each("dtype", [F32, BF16, I8])
@for_each("name", CPUS)
def test_a_square_fits_the_registers_twice(name: str, dtype: DType) -> None:
    (result,) = scheduled(_transposed((256, 256), (1, 0), dtype), CPUS[name])
    rows = [as_int(f.extent) or 0 for f in loops(result.func.body) if f.kind == "vectorize"]
    assert rows
    assert max(rows) <= CPUS[name].vector_registers // 2


def test_what_follows_is_computed_on_the_way() -> None:
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, 40, 24)), g.input("y", tensor(F32, 24, 40))
    z = g.add("add", g.add("transpose", x, attrs=TransposeAttrs((1, 0))), y)
    graph = g.graph(g.add("relu", z))
    check_native(graph, random_inputs(graph)).close()
    (kernel,) = scheduled(graph)
    assert "partition=2" in print_func(kernel.func)


def test_large_ones_are_shared_among_threads() -> None:
    (small,) = scheduled(_transposed((16, 16), (1, 0)))
    (large,) = scheduled(_transposed((512, 256), (1, 0)))
    assert "parallel" not in kinds(small.func)
    assert len(kinds(large.func)["parallel"]) == 1


SHORT = [((7, 19, 5, 33), (3, 2, 1, 0)), ((4, 9, 40), (2, 1, 0)), ((12, 6, 35), (2, 1, 0))]


@pytest.mark.parametrize("dtype", [F32, BF16, I8, BOOL])
@pytest.mark.parametrize(("shape", "perm"), SHORT)
def test_short_lines(shape: tuple[int, ...], perm: tuple[int, ...], dtype: DType) -> None:
    graph = _transposed(shape, perm, dtype)
    check_native(graph, random_inputs(graph)).close()


@for_each(("shape", "perm"), SHORT)
def test_a_short_line_has_a_square_of_its_own(
    shape: tuple[int, ...], perm: tuple[int, ...]
) -> None:
    graph, machine = _transposed(shape, perm), CPUS["x86-64-v4"]
    check(graph, {}, machine)
    (result,) = scheduled(graph, machine)
    (side,) = [as_int(f.extent) for f in loops(result.func.body) if f.kind == "vectorize"]
    assert side is not None
    assert side // 2 < shape[0] <= side


@for_each("columns", [2, 3])
def test_a_few_columns_are_no_square(columns: int) -> None:
    (kernel,) = scheduled(_transposed((columns, 9, 64), (2, 1, 0)), CPUS["x86-64-v4"])
    assert "vectorize" not in kinds(kernel.func)
