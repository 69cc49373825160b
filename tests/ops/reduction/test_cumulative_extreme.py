"""The greatest and least element so far against torch, whose rules for ties and NaN these are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.cumulative_extreme import CumulativeExtremeAttrs
from tilewright.ops.registry import get_op

OP = "cumulative_extreme"


@for_each("largest", [True, False])
@for_each("axis", [0, 1, -1])
@for_each("dtype", ["float32", "int32", "float64"])
def test_against_torch(dtype: str, axis: int, largest: bool) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (2, 9, 3)).astype(dtype)
    if dtype != "int32":
        x[0, 4, 1], x[1, 2, 0], x[1, 7, 0], x[0, 1, 2] = np.nan, np.nan, np.nan, np.inf
    run = torch.cummax if largest else torch.cummin
    found = run_op(OP, x, attrs=CumulativeExtremeAttrs(axis, largest), dims=[("N", 9, "M")])
    for ours, theirs in zip(found, run(torch.from_numpy(x), axis), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy())


@pytest.mark.parametrize("axis", [0, 2])
def test_natively(axis: int) -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 5, 6, Var("N")))
    outs = [
        y for k in (0, 1) for y in g.add_many(OP, x, attrs=CumulativeExtremeAttrs(axis, bool(k)))
    ]
    graph = g.graph(*outs)
    for n in (17, 1):
        check_native(graph, random_inputs(graph, {"N": n}))


def test_loops_are_well_formed() -> None:
    loops = get_op(OP).loops
    assert loops is not None
    x = tensor(F32, 4, 7)
    outs = get_op(OP).infer(CumulativeExtremeAttrs(1), [x])
    verify_func(loops(CumulativeExtremeAttrs(1), [x], outs))


def test_type_errors() -> None:
    with pytest.raises(TypeCheckError, match="axis 1 is outside"):
        run_op(OP, np.ones(3, np.float32), attrs=CumulativeExtremeAttrs(1))
    with pytest.raises(TypeCheckError, match="no axis"):
        run_op(OP, np.ones((), np.float32), attrs=CumulativeExtremeAttrs(0))
    with pytest.raises(TypeCheckError, match="is not defined on bool"):
        run_op(OP, np.ones(3, bool), attrs=CumulativeExtremeAttrs(0))
