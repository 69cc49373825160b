"""Every phase of an axis in vectors of its own, on odd lines, shifts, and where it does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.ops.run_op import exprs
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.core.dtypes import F16, F32, F64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS


def _col2im(
    image: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dtype: DType = F32,
) -> Graph:
    ends = [n + pads[d] + pads[d + 2] for d, n in enumerate(image)]
    counts = [(e - k) // s + 1 for e, k, s in zip(ends, kernel, strides, strict=True)]
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, 2, 3 * int(np.prod(kernel)), int(np.prod(counts))))
    attrs = Col2ImAttrs(exprs(*image), exprs(*kernel), strides, pads, (1, 1))
    return g.graph(g.add("col2im", x, attrs=attrs))


CASES = [
    ((9, 33), (3, 3), (2, 2), (0, 0, 0, 0)),
    ((8, 70), (4, 4), (2, 2), (1, 1, 1, 1)),
    ((10, 67), (2, 5), (3, 3), (0, 1, 2, 1)),
    ((5, 41), (3, 4), (1, 4), (1, 0, 1, 1)),
    ((7, 6), (3, 3), (2, 2), (1, 1, 0, 0)),
    ((6, 35), (1, 1), (2, 2), (0, 0, 0, 0)),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [F32, F64, F16])
def test_machine_code(case: tuple, dtype: DType) -> None:
    graph = _col2im(*case, dtype=dtype)
    check_native(graph, random_inputs(graph), threads=2)


@pytest.mark.parametrize("case", CASES[:4])
@pytest.mark.parametrize("target", ["aarch64", "x86-64-v3", "x86-64-v4"])
def test_phases_are_unrolled_around_vectors(case: tuple, target: str) -> None:
    graph, machine = _col2im(*case), CPUS[target]
    assert check(graph, {}, machine) == ["injective"]
    (result,) = scheduled(graph, machine)
    assert len(kinds(result.func)["unroll"]) == sum(s > 1 for s in case[2])
    assert len(kinds(result.func)["vectorize"]) == 1


def test_more_phases_than_are_interleaved_stay() -> None:
    (result,) = scheduled(_col2im((5, 60), (3, 6), (1, 6)), CPUS["x86-64-v4"])
    assert "unroll" not in kinds(result.func)
