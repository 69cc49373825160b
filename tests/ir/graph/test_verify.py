from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, F64
from tilewright.core.errors import Loc, VerifyError
from tilewright.ir.graph.nodes import Check, Constant, Graph, Node, Value
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor

T = tensor(F32, Var("N"), 4)
X = Value("x", T)
RELU = Node("relu", ("x",), ("y",), (T,), loc=Loc("m.onnx", "Relu_0"))
EXP = Node("exp", ("y", ""), ("z",), (T,))
GOOD = Graph("f", (X,), (), (RELU, EXP), ("z", "x"))
ONES = np.ones(4, np.float32)


def test_a_good_graph():
    verify_graph(GOOD)
    verify_graph(replace(GOOD, constants=(Constant("c", tensor(F32, 4), ONES),)))
    verify_graph(replace(GOOD, nodes=(replace(RELU, regions=(GOOD,)), EXP)))


WRONG = {
    "graph.undefined": replace(GOOD, nodes=(EXP, RELU)),
    "graph.redefined": replace(GOOD, nodes=(RELU, EXP, replace(RELU, outputs=("z",)))),
    "graph.output": replace(GOOD, outputs=("w",)),
    "graph.type": replace(GOOD, nodes=(replace(RELU, types=(None,)), EXP)),
    "graph.name": replace(GOOD, nodes=(RELU, EXP, replace(RELU, outputs=("",)))),
    "graph.outputs": replace(GOOD, nodes=(RELU, EXP, replace(RELU, outputs=(), types=()))),
    "graph.attrs": replace(GOOD, nodes=(replace(RELU, attrs=3), EXP)),
    "graph.check": replace(GOOD, checks=(Check(Var("N") + 1, "no condition"),)),
    "graph.constant": replace(GOOD, constants=(Constant("c", tensor(F64, 4), ONES),)),
}


@for_each("code", WRONG)
def test_a_wrong_graph(code):
    with pytest.raises(VerifyError) as error:
        verify_graph(WRONG[code])
    assert error.value.code == code
    nested = replace(GOOD, nodes=(replace(RELU, regions=(WRONG[code],)), EXP))
    with pytest.raises(VerifyError):
        verify_graph(nested)


def test_more_wrong_graphs():
    for broken in (
        replace(GOOD, inputs=(X, X)),
        replace(GOOD, nodes=(replace(RELU, types=(T, T)), EXP)),
        replace(GOOD, nodes=(replace(RELU, inputs=("nowhere",)), EXP)),
        replace(GOOD, constants=(Constant("c", tensor(F32, 5), ONES),)),
        replace(GOOD, constants=(Constant("c", tensor(F32, Var("N")), ONES),)),
    ):
        with pytest.raises(VerifyError):
            verify_graph(broken)


def test_messages_name_node_and_value():
    with pytest.raises(VerifyError) as error:
        verify_graph(replace(GOOD, nodes=(replace(RELU, inputs=("z",)), EXP)))
    text = str(error.value)
    assert "node relu 'y' reads value 'z' before its definition" in text
    assert "m.onnx, node Relu_0" in text


def test_regions_see_nothing_of_what_surrounds_them():
    inner = Graph("g", (), (), (Node("exp", ("x",), ("w",), (T,)),), ("w",))
    with pytest.raises(VerifyError, match="'g'"):
        verify_graph(replace(GOOD, nodes=(replace(RELU, regions=(inner,)), EXP)))
