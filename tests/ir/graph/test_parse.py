from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import Error, ParseError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.parse import parse_graph, parse_type
from tilewright.ir.graph.text import print_graph
from tilewright.ir.types import SequenceType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder


def _parse(text: str, **constants: np.ndarray) -> Graph:
    return parse_graph(text, make_attrs, constants, "f.graph")


ERRORS = [
    ("graph f() { return }", "f.graph:1:7"),
    ("graph @f(x: f31[2]) { return }", "no type named 'f31'"),
    ("graph @f(c: f32[2] = const [1.0]) { return }", "is given 1 elements"),
    ("graph @f(c: f32[N] = const [1.0]) { return }", "symbolic shape"),
    ("graph @f(c: f32[] = const x) { return }", "expected a number"),
    ("graph @f(c: seq(f32[]) = const 1.0) { return }", "must be a tensor"),
    ("graph @f() {\n  %a: f32[] = nonesuch()\n  return\n}", "f.graph:2:3"),
    ("graph @f() {\n  %a: f32[] = relu(%b) {size=1}\n  return\n}", "no attribute 'size'"),
    ("graph @f() { return } graph", "after the graph"),
    ("graph @f() {", "the end"),
    ("graph @f() = %x", "expected '('"),
    ("graph @f(x: f32[]) =\n  let %y: f32[] = relu(%x)\n  (%y)", "f.graph:3:3"),
    ("graph @f(x: f32[]) = (%x) }", "after the graph"),
]


@for_each(("text", "message"), ERRORS)
def test_wrong_text(text, message):
    with pytest.raises(Error) as error:
        _parse(text)
    assert message in str(error.value)


def test_large_constants_must_be_given():
    g = GraphBuilder("f")
    w = np.arange(20, dtype=np.float32)
    text = print_graph(g.graph(g.constant(w, "w")))
    assert _parse(text, w=w).constants[0].data is w
    with pytest.raises(ParseError, match=r"parse\.constant") as error:
        _parse(text)
    assert "'w' is not given" in str(error.value)
    with pytest.raises(ParseError, match="other contents"):
        _parse(text, w=w + 1)


def test_a_type_alone() -> None:
    assert parse_type("f32[N, 3]") == tensor(F32, Var("N"), 3)
    assert parse_type("seq(i64[])") == SequenceType(tensor(I64))
    for text in ("f32[N] x", "f32", "f99[3]"):
        with pytest.raises(ParseError):
            parse_type(text)
