from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.core.dtypes import BF16, F32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.block_scans import COLUMNS, MIN_BLOCKS, ROWS, block_scans

BLOCK = COLUMNS.terms
MIN_TERMS = MIN_BLOCKS * BLOCK
LONG_ROW = MIN_BLOCKS * ROWS.terms


def _scan(shape: tuple[int, ...], axis: int, dtype: DType = F32, **attrs: bool) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *shape))
    return g.graph(g.add("cumsum", x, attrs=ScanAttrs(axis, **attrs)))


@for_each(
    ("shape", "axis", "dtype"),
    [
        ((3, 4 * BLOCK, 2), 1, F32),
        ((3, 4 * BLOCK + 1, 2), -2, F32),
        ((2, 7 * BLOCK - 3, 3), 1, I64),
        ((MIN_TERMS * BLOCK + 5, 2), 0, F32),  # sums of blocks are cut, too
        ((2, 300, 2), 1, BF16),
        ((1, LONG_ROW + 3), 1, F32),
    ],
)
def test_blocks_add_up_to_the_whole(shape: tuple[int, ...], axis: int, dtype: DType) -> None:
    graph = _scan(shape, axis, dtype)
    after = block_scans(graph, ON_GPU)
    verify_graph(after)
    check_types(after)
    lengths = [
        n.type.static_shape[n.attrs.axis]
        for n in after.nodes
        if isinstance(n.attrs, ScanAttrs) and n.type.static_shape is not None
    ]
    assert max(lengths) < (LONG_ROW if shape[-1] >= LONG_ROW else MIN_TERMS)
    assert block_scans(after, ON_GPU) is after
    x = (np.random.default_rng(3).standard_normal(shape) * 8).astype(dtype.numpy)
    found = run_graph(after, {"x": x})[after.outputs[0]]
    right = np.cumsum(x.astype(np.float64), axis)
    np.testing.assert_allclose(
        found.astype(np.float64), right, rtol=1e-2 if dtype == BF16 else 1e-4, atol=1e-3
    )


def test_numbers_that_are_not_finite_spoil_only_what_follows() -> None:
    graph = _scan((1, 500, 2), 1)
    x = np.ones((1, 500, 2), np.float32)
    x[0, 100, 0], x[0, 300, 0] = np.inf, -np.inf
    after = block_scans(graph, ON_GPU)
    with np.errstate(invalid="ignore"):
        found = run_graph(after, {"x": x})[after.outputs[0]]
        np.testing.assert_array_equal(found, np.cumsum(x, 1))


@for_each(
    "graph",
    [
        _scan((2, MIN_TERMS - 1, 2), 1),
        _scan((2, 500, 2), 1, exclusive=True),
        _scan((2, 500, 2), 1, reverse=True),
        _scan((132, 500, 128), 1),  # a thread for each column is enough
        _scan((2, LONG_ROW - 1), 1),
        _scan((132, LONG_ROW), 1),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert block_scans(graph, ON_GPU) is graph
