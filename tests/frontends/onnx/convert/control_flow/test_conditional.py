"""If: conditions known or not, branches that differ, branches that make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.differential.native import compare
from tests.for_each import for_each
from tilewright.core.errors import ExecutionError, FrontendError, TypeCheckError, UnsupportedError
from tilewright.driver.compile import compile
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types

Node = onnx.NodeProto


def op(kind: str, inputs: str, outputs: str, **attrs: Any) -> Node:
    return helper.make_node(
        kind, inputs.split(), outputs.split(), name=f"{kind}_{outputs}", **attrs
    )


def branch(*nodes: Node, outputs: str, constants: dict[str, Any] | None = None) -> Any:
    stored = [numpy_helper.from_array(np.asarray(a), k) for k, a in (constants or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    return helper.make_graph(nodes, "branch", [], results, stored)


def model(
    *nodes: Node,
    shape: Sequence[str | int] = ("N", 3),
    outputs: str = "y",
    constants: dict[str, Any] | None = None,
) -> onnx.ModelProto:
    stored = [numpy_helper.from_array(np.asarray(a), k) for k, a in (constants or {}).items()]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs.split()]
    graph = helper.make_graph(nodes, "g", inputs, results, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


EXP = branch(op("Exp", "x", "t"), outputs="t")
NEG = branch(op("Neg", "x", "e"), outputs="e")
TWICE = branch(op("Concat", "x x", "t", axis=0), outputs="t")
LAST = {"i": np.array(1, np.int64), "one": np.array(1, np.int64), "axis": np.array([1], np.int64)}


def is_one() -> list[Node]:
    """The nodes of `c1 = x.shape[1] == 1`."""
    nodes = [op("Shape", "x", "s"), op("Gather", "s i", "d"), op("Equal", "d one", "c1")]
    return nodes


def check(m: onnx.ModelProto, *rows: int, width: int = 3) -> None:
    """Interpreter, machine code and ONNX's reference agree whichever branch is taken."""
    graph = import_onnx(m)
    verify_graph(graph)
    check_types(graph)
    reference = ReferenceEvaluator(m)
    with compile(graph, cache=False, threads=1) as native:
        for n in rows:
            for truth in (True, False):
                x = np.random.default_rng(n).standard_normal((n, width)).astype(np.float32)
                given = {"x": x, "c": np.array(truth)}
                found = run_graph(graph, given)
                expected = reference.run(None, given)
                for name, array in zip(graph.outputs, expected, strict=True):
                    assert found[name].shape == array.shape
                    np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)
                compare(graph, native, given)


def test_a_condition_that_is_data() -> None:
    check(model(op("If", "c", "y", then_branch=EXP, else_branch=NEG)), 1, 4)


def test_sizes_that_depend_on_data() -> None:
    """What follows works on the size that the branch gave, and so does the result."""
    tail = [op("Exp", "z", "e2"), op("Transpose", "e2", "y", perm=[1, 0])]
    check(model(op("If", "c", "z", then_branch=TWICE, else_branch=NEG), *tail), 1, 3, 0)


def test_values_from_outside_and_several_results() -> None:
    """A branch reads inputs, constants and computed values; one result is what it was given."""
    then = branch(
        op("Mul", "h w", "a"), op("Add", "a k", "b"), outputs="b h", constants={"k": np.float32(3)}
    )
    other = branch(op("Sub", "x h", "a2"), op("Identity", "x", "b2"), outputs="a2 b2")
    m = model(
        op("Relu", "x", "h"),
        op("If", "c", "p q", then_branch=then, else_branch=other),
        op("Add", "p q", "y"),
        outputs="y q",
        constants={"w": np.full((1, 3), 2, np.float32)},
    )
    check(m, 1, 5)


def test_nested_branches() -> None:
    inner = op("If", "c", "i", then_branch=EXP, else_branch=TWICE)
    after = branch(inner, op("Neg", "i", "o"), outputs="o")
    m = model(
        op("Not", "c", "n"),
        op("If", "n", "z", then_branch=after, else_branch=NEG),
        op("Exp", "z", "y"),
    )
    check(m, 1, 4)


@for_each(("width", "kept"), [(1, "concat"), (3, "neg")])
def test_a_condition_that_is_known_leaves_one_branch(width: int, kept: str) -> None:
    m = model(
        *is_one(),
        op("If", "c1", "y", then_branch=TWICE, else_branch=NEG),
        shape=("N", width),
        constants=LAST,
    )
    graph = import_onnx(m)
    assert kept in {n.op for n in graph.nodes}
    assert "if" not in {n.op for n in graph.nodes}


def test_a_condition_over_sizes_and_one_rank() -> None:
    m = model(
        *is_one(),
        op("If", "c1", "y", then_branch=TWICE, else_branch=NEG),
        shape=("N", "M"),
        constants=LAST,
    )
    assert "condition=" in print_graph(import_onnx(m))
    check(m, 2, width=1)
    check(m, 2, width=4)


def squeeze_if_one(*tail: Node) -> onnx.ModelProto:
    """`x` without its last dimension if that is 1, as PyTorch exports `squeeze(-1)`."""
    squeezed = branch(op("Squeeze", "x axis", "t"), outputs="t", constants={"axis": LAST["axis"]})
    same = branch(op("Identity", "x", "e"), outputs="e")
    node = op("If", "c1", "z", then_branch=squeezed, else_branch=same)
    constants = {k: LAST[k] for k in ("i", "one")} | {"perm_axis": np.array([0, 1], np.int64)}
    return model(*is_one(), node, *tail, shape=("N", "M"), constants=constants)


def test_branches_of_different_ranks_are_chosen_by_what_follows() -> None:
    """Where the rest of the model needs a matrix the other branch is taken, and checked."""
    flat = squeeze_if_one(op("Exp", "z", "y"))
    with compile(flat, cache=False) as native:
        x = np.ones((4, 1), np.float32)
        assert native(x, np.array(True)).shape == (4,)
        with pytest.raises(ExecutionError, match=r"input x has shape \[N, 1\]"):
            native(np.ones((4, 2), np.float32), np.array(True))
    matrix = squeeze_if_one(op("Transpose", "z", "y", perm=[1, 0]))
    with compile(matrix, cache=False) as native:
        assert native(np.ones((4, 2), np.float32), np.array(True)).shape == (2, 4)
        with pytest.raises(ExecutionError, match="If_z: If: the model was compiled") as caught:
            native(x, np.array(True))
        assert "M = 1" in caught.value.help


def test_different_ranks_that_depend_on_data() -> None:
    flat = branch(op("ReduceSum", "x", "t", keepdims=0), outputs="t")
    m = model(op("If", "c", "y", then_branch=flat, else_branch=NEG))
    with pytest.raises(UnsupportedError, match=r"If: input 0 .* is known only when"):
        import_onnx(m)


def test_a_branch_that_cannot_run_fails_when_taken() -> None:
    wrong = branch(op("Add", "x bad", "t"), outputs="t", constants={"bad": np.ones(4, np.float32)})
    m = model(op("If", "c", "y", then_branch=wrong, else_branch=NEG))
    with compile(m, cache=False) as native:
        x = np.ones((2, 3), np.float32)
        np.testing.assert_array_equal(native(x, np.array(False)), -x)
        with pytest.raises(ExecutionError, match=r"cannot run: .*do not broadcast"):
            native(x, np.array(True))
    both = model(op("If", "c", "y", then_branch=wrong, else_branch=wrong))
    with pytest.raises(TypeCheckError, match="do not broadcast"):
        import_onnx(both)


MALFORMED = [
    (branch(outputs="missing"), "reads 'missing'|'missing' of a nested graph"),
    (branch(op("Exp", "nowhere", "t"), outputs="t"), "nowhere"),
    (branch(outputs=""), "gives 0 results, not 1"),
    (branch(op("Exp", "a", "b"), op("Exp", "b", "a"), outputs="a"), "depend on their own results"),
]


@for_each(("bad", "message"), MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_branches(bad: Any, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        import_onnx(model(op("If", "c", "y", then_branch=bad, else_branch=NEG)))


def test_malformed_nodes() -> None:
    with pytest.raises(FrontendError, match="else_branch is missing"):
        import_onnx(model(op("If", "c", "y", then_branch=EXP)))
    with pytest.raises(FrontendError, match="condition is f32"):
        import_onnx(model(op("If", "x", "y", then_branch=EXP, else_branch=NEG)))
    with pytest.raises(FrontendError, match="attribute then_branch is INT"):
        import_onnx(model(op("If", "c", "y", then_branch=1, else_branch=NEG)))
    takes = helper.make_graph(
        [op("Exp", "v", "t")],
        "branch",
        [helper.make_tensor_value_info("v", TensorProto.FLOAT, [3])],
        [onnx.ValueInfoProto(name="t")],
    )
    with pytest.raises(FrontendError, match="then_branch has inputs"):
        import_onnx(model(op("If", "c", "y", then_branch=takes, else_branch=NEG)))
