from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, random_graph
from tilewright.arith.expr import Var, const, maximum
from tilewright.core.dtypes import BF16, BOOL, DTYPES, F16, F32, F64, I64, STRING, U64
from tilewright.ir.graph.nodes import Graph, Node, Value
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import OptionalType, SequenceType, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.fuse import fuse

N = Var("N")


def _round_trip(graph: Graph) -> Graph:
    text = print_graph(graph)
    back = parse_graph(text, make_attrs, {c.name: c.data for c in graph.constants})
    assert print_graph(back) == text
    let = print_graph(graph, "let")
    again = parse_graph(let, make_attrs, {c.name: c.data for c in graph.constants})
    assert print_graph(again) == text
    assert print_graph(again, "let") == let
    verify_graph(back)
    for old, new in zip(graph.walk(), back.walk(), strict=True):
        assert (old.op, old.inputs, old.outputs) == (new.op, new.inputs, new.outputs)
        assert (old.types, old.attrs) == (new.types, new.attrs)
    for old, new in zip(graph.constants, back.constants, strict=True):
        assert old.type == new.type
        assert old.data.dtype == new.data.dtype
        assert str(old.data.tolist()) == str(new.data.tolist())
    return back


@for_each("seed", SEEDS)
def test_random_graphs_round_trip(seed):
    graph = random_graph(seed)
    check_types(_round_trip(graph))
    check_types(_round_trip(fuse(dce(graph, ON_CPU), ON_CPU)))


def test_the_text(golden):
    g = GraphBuilder("a/block")
    x = g.input("x", tensor(F32, N, 64))
    y = g.input("/encoder/layer.0/Add_output_0", tensor(F32, N, 64))
    w = g.constant(np.ones((64, 8), np.float32), "w")
    b = g.constant(np.array([0.1, np.inf, -np.inf, 1e-30, -0.0, 7, 8, 9], np.float32), "8")
    z = g.add("add", x, y, name="1")
    z = g.add("matmul", z, w, name='a "quoted" name')
    z = g.add("add", z, b)
    values, indices = g.add_many(
        "topk", z, attrs=make_attrs("topk", {"k": 2, "largest": False}), names=("top", "which")
    )
    graph = g.graph(values, indices)
    _round_trip(graph)
    golden(print_graph(graph))


@for_each("dtype", [d for d in DTYPES.values() if d != STRING], ids=str)
def test_constants_of_every_type(dtype):
    g = GraphBuilder("f")
    values = np.array([0, 1, 3]).astype(dtype.numpy)
    names = [g.constant(v) for v in (values, values[1], values[:0], values.reshape(3, 1))]
    graph = g.graph(*names[:1])
    assert [c.data.shape for c in _round_trip(graph).constants] == [(3,), (), (0,), (3, 1)]


@for_each("dtype", [d for d in DTYPES.values() if d.is_small], ids=str)
def test_every_number_of_a_small_type(dtype):
    """Zeros keep their signs; a NaN is one NaN."""
    codes = np.arange(1 << dtype.bits, dtype=np.uint8)
    values = codes.view(dtype.numpy)
    numbers = ~np.isnan(values.astype("f4"))
    for start in range(0, len(codes), 8):
        g = GraphBuilder("f")
        graph = g.graph(g.constant(values[start : start + 8]))
        (back,) = _round_trip(graph).constants
        kept = numbers[start : start + 8]
        np.testing.assert_array_equal(back.data.view("u1")[kept], codes[start : start + 8][kept])


def test_extreme_constants():
    floats = np.array([0.1, 1 / 3, 5e-324, 1.7976931348623157e308, np.nan, -np.inf])
    g = GraphBuilder("f")
    g.constant(floats)
    with np.errstate(over="ignore"):
        g.constant(floats.astype(np.float32))
        g.constant(floats.astype(F16.numpy))
        g.constant(floats.astype(BF16.numpy))
    g.constant(np.array([2**64 - 1, 0], U64.numpy))
    g.constant(np.array([-(2**63), 2**63 - 1], I64.numpy))
    g.constant(np.array(["a", 'say "hi"\n', "é"], object))
    _round_trip(g.graph())


ATTRIBUTES = [
    ("reshape", {"shape": (N * 2 + 1, maximum(N, 3), N // 4)}),
    ("slice", {"starts": (const(0), N - 1), "stops": (N, const(-1)), "steps": (1, -1)}),
    ("cast", {"to": F64}),
    ("leaky_relu", {"alpha": -1e-5}),
    ("leaky_relu", {"alpha": float("inf")}),
    ("full", {"shape": (2,), "value": 1, "dtype": F32}),
    ("full", {"shape": (2,), "value": 1.0, "dtype": F32}),
    ("full", {"shape": (2,), "value": True, "dtype": BOOL}),
    ("einsum", {"equation": "i,i->"}),
    ("attention", {"scale": 0.125, "precision": F32}),
    ("attention", {"scale": None}),
    ("resize", {"shape": (N,), "scales": ((const(1), const(2)), (N, const(3)))}),
]


@for_each(("op", "values"), ATTRIBUTES)
def test_attributes_round_trip(op, values):
    attrs = make_attrs(op, values)
    n = Node(op, ("x", "", "x"), ("y",), (tensor(F32, N),), attrs)
    graph = Graph("f", (Value("x", tensor(F32, N)),), (), (n,), ("y",))
    (back,) = _round_trip(graph).nodes
    for name in values:
        assert type(getattr(back.attrs, name)) is type(getattr(attrs, name))


def test_every_kind_of_type():
    types = (SequenceType(tensor(F32, N)), OptionalType(SequenceType(tensor(I64))))
    graph = Graph("f", tuple(Value(f"x{i}", t) for i, t in enumerate(types)), (), (), ())
    back = _round_trip(graph)
    assert back.inputs == graph.inputs


def test_checks_come_first():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, N, 4))
    g.add_check((N % 4).eq(0), 'rows "by four"')
    g.add_check(N < 513, "few rows")
    graph = g.graph(g.add("relu", x))
    back = _round_trip(graph)
    assert [(c.condition, c.message) for c in back.checks] == [
        (c.condition, c.message) for c in graph.checks
    ]


def test_the_let_form(golden):
    g = GraphBuilder("block")
    x = g.input("x", tensor(F32, N, 64))
    w = g.constant(np.ones((64, 8), np.float32), "w")
    g.add_check((N % 4).eq(0), "rows by four")
    y = g.add("relu", g.add("matmul", x, w))
    top = g.add_many("topk", y, attrs=make_attrs("topk", {"k": 2}), names=("a", "b"))
    graph = fuse(g.graph(*top), ON_CPU)
    _round_trip(graph)
    golden(print_graph(graph, "let"))
