from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.control.test_conditional import branch, conditional
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BOOL, F32, I64, DType
from tilewright.driver.compile_graph import lower
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import make_options
from tilewright.driver.program.host_predicates import host_predicate, host_scalar_inputs
from tilewright.driver.program.steps import IfStep
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.control.conditional import IfAttrs
from tilewright.ops.graph_builder import GraphBuilder


def _chosen(condition: str, dtype: DType = I64, size: int = 1, shown: bool = False) -> Graph:
    """A choice by what is made of the second input; `shown` lets others read that too."""
    g = GraphBuilder("f")
    x, n = g.input("x", tensor(F32, 2, 3)), g.input("n", tensor(dtype, size))
    many = g.constant(np.array([16000], dtype.numpy))
    made = {
        "equal": lambda: g.add("equal", n, many),
        "between": lambda: g.add(
            "and", g.add("less", n, many), g.add("not", g.add("equal", n, many))
        ),
        "computed": lambda: g.add("equal", g.add("add", n, many), many),
        "reduced": lambda: g.add(
            "equal", g.add("reduce_max", n, attrs=make_attrs("reduce_max", {"axes": (0,)})), many
        ),
    }[condition]()
    regions = tuple(branch(op, type=tensor(F32, 2, 3)) for op in ("exp", "neg"))
    g.add_control("if", [made, x], regions, IfAttrs(), ["y"])
    return g.graph("y", made) if shown else g.graph("y")


def _choice(graph: Graph, target: str = "cuda") -> tuple[IfStep, ModelBuild]:
    build = lower(graph, make_options(target=target))
    return next(item for item in build.program.items if isinstance(item, IfStep)), build


@for_each("condition", ["equal", "between"])
def test_conditions_are_told_without_a_kernel(condition: str) -> None:
    choice, build = _choice(_chosen(condition))
    assert not isinstance(choice.condition, str)
    assert [s.node.name for s in build.steps] == [i.node.name for b in choice.branches for i in b]
    assert build.code.host_inputs == (("input.1", 1),)


def test_an_input_is_a_condition() -> None:
    choice, _ = _choice(conditional(branch("exp"), branch("neg")).graph("y"))
    assert choice.condition is Var("input.1", BOOL)


@for_each(
    "graph",
    [_chosen("computed"), _chosen("equal", F32), _chosen("reduced", size=3)],
    ids=["computed", "float", "several"],
)
def test_other_conditions_are_read(graph: Graph) -> None:
    choice, build = _choice(graph)
    assert isinstance(choice.condition, str)
    assert build.code.host_inputs == ()


def test_a_condition_that_is_a_result_is_computed_as_well() -> None:
    choice, build = _choice(_chosen("equal", shown=True))
    assert not isinstance(choice.condition, str)
    assert len(build.steps) == 3


def test_a_processor_reads_them_all() -> None:
    assert isinstance(_choice(_chosen("equal"), "aarch64")[0].condition, str)


def test_only_single_whole_numbers_are_asked() -> None:
    g = GraphBuilder("f")
    g.input("x", tensor(F32, 1))
    g.input("many", tensor(I64, 2))
    y = g.add("identity", g.input("one", tensor(I64, 1, 1)))
    graph = g.graph(y)
    given = host_scalar_inputs(graph)
    assert given == {"one": Var("input.2")}
    assert host_predicate("one", given, {}, {}) is Var("input.2")
    assert host_predicate("x", given, {}, {}) is None
