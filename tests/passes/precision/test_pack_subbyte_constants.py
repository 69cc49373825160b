"""Packed constants are read as what they were."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.core.dtypes import F4E2M1, F6E2M3, F32, I8, SMALL_INTEGERS, U8, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.precision.pack_subbyte_constants import pack_subbyte_constants, packed_rows


def _graph(dtype: DType, to: DType, *shape: int) -> tuple[Graph, np.ndarray]:
    codes = np.random.default_rng(0).integers(0, 1 << dtype.bits, shape).astype(np.uint8)
    data = codes.view(dtype.numpy)
    g = GraphBuilder("g")
    x = g.input("x", tensor(to, shape[-1]))
    w = g.add("cast", g.constant(data, "w"), attrs=CastAttrs(to))
    return g.graph(g.add("mul", w, x, name="y")), data


@for_each("dtype", [*SMALL_INTEGERS, F4E2M1], ids=str)
@for_each("to", [F32, I8], ids=str)
def test_packed(dtype: DType, to: DType) -> None:
    graph, data = _graph(dtype, to, 3, 11, 128)
    found = dce(pack_subbyte_constants(graph, ON_CPU), ON_CPU)
    verify_graph(found)
    check_types(found)
    bytes_ = [c for c in found.constants if c.data.size > 1]
    assert [(c.type.dtype, c.data.nbytes) for c in bytes_] == [(U8, data.size * dtype.bits // 8)]
    x = np.arange(128).astype(to.numpy)
    expected = data.astype(to.numpy) * x
    np.testing.assert_array_equal(run_graph(found, {"x": x})["y"], expected)
    with tw.compile(found, threads=1, cache=False) as executable:
        np.testing.assert_array_equal(executable.run({"x": x})["y"], expected)


@for_each(
    ("dtype", "shape"),
    [(SMALL_INTEGERS[0], (9, 9)), (SMALL_INTEGERS[1], (99, 127)), (I8, (99, 128))],
)
def test_left_as_it_is(dtype: DType, shape: tuple[int, ...]) -> None:
    """Few elements, rows that end within a byte, and what fills its bytes."""
    graph, _ = _graph(dtype, F32, *shape)
    assert pack_subbyte_constants(graph, ON_CPU) is graph


def test_six_bits_are_not_packed() -> None:
    graph, _ = _graph(F6E2M3, F32, 99, 128)
    assert pack_subbyte_constants(graph, ON_CPU) is graph


def test_bytes() -> None:
    row = np.array([[1, 2, 3, 4]], np.uint8)
    assert packed_rows(row, 4).tolist() == [[1 | 3 << 4, 2 | 4 << 4]]
    assert packed_rows(row & 3, 2).tolist() == [[1 | 2 << 2 | 3 << 4]]
