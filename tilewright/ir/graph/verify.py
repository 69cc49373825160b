"""What must hold of every graph, whatever its operators mean.

Every value is defined once and before its uses; outputs exist; constants are what their types say;
nested graphs hold by themselves, since they read nothing but their own inputs and constants. That
operators are known and their types right is `ops.typecheck`'s business.
"""

from __future__ import annotations

from typing import NoReturn

from tilewright.core.dtypes import BOOL, from_numpy
from tilewright.core.errors import NOWHERE, Loc, VerifyError
from tilewright.ir.graph.nodes import Attrs, Constant, Graph, Node
from tilewright.ir.types import OptionalType, SequenceType, TensorType

_TYPES = (TensorType, SequenceType, OptionalType)


def verify_graph(graph: Graph) -> None:
    """Raise VerifyError, naming the node and the value, if the graph breaks a rule."""
    defined: set[str] = set()
    for v in graph.inputs:
        _define(graph, defined, v.name, f"input {v.name!r}", v.type)
    for c in graph.constants:
        _define(graph, defined, c.name, f"constant {c.name!r}", c.type)
        _check_constant(graph, c)
    for check in graph.checks:
        if check.condition.dtype != BOOL:
            _fail(graph, "check", f"check {check.condition} is no condition", check.loc)
    for n in graph.nodes:
        _check_node(graph, defined, n)
    for name in graph.outputs:
        if name not in defined:
            _fail(graph, "output", f"output {name!r} is not defined")


def _fail(graph: Graph, what: str, message: str, loc: Loc = NOWHERE) -> NoReturn:
    raise VerifyError(f"graph.{what}", f"graph {graph.name!r}: {message}", loc=loc)


def _define(
    graph: Graph, defined: set[str], name: str, who: str, type: object, loc: Loc = NOWHERE
) -> None:
    if not name:
        _fail(graph, "name", f"{who} defines a value without a name", loc)
    if name in defined:
        _fail(graph, "redefined", f"{who} defines value {name!r} a second time", loc)
    if not isinstance(type, _TYPES):
        _fail(graph, "type", f"value {name!r} of {who} has no type", loc)
    defined.add(name)


def _check_constant(graph: Graph, c: Constant) -> None:
    shape = c.type.static_shape
    if shape != c.data.shape or from_numpy(c.data.dtype) != c.type.dtype:
        found = f"{from_numpy(c.data.dtype)}{list(c.data.shape)}"
        _fail(graph, "constant", f"constant {c.name!r} is of type {c.type}, its data {found}")


def _who(n: Node) -> str:
    """What messages call a node; spelt only where there is something to say."""
    return f"node {n.op} {n.name!r}"


def _check_node(graph: Graph, defined: set[str], n: Node) -> None:
    if not n.outputs:
        _fail(graph, "outputs", f"a node {n.op} has no outputs", n.loc)
    for name in n.inputs:
        if name and name not in defined:
            later = any(name in other.outputs for other in graph.nodes)
            what = "before its definition" if later else "which is not defined"
            _fail(graph, "undefined", f"{_who(n)} reads value {name!r} {what}", n.loc)
    if len(n.types) != len(n.outputs):
        counts = f"{len(n.outputs)} outputs, {len(n.types)} types"
        _fail(graph, "type", f"{_who(n)} has {counts}", n.loc)
    for name, t in zip(n.outputs, n.types, strict=True):
        if not name or name in defined or not isinstance(t, _TYPES):
            _define(graph, defined, name, _who(n), t, n.loc)
        defined.add(name)
    if not isinstance(n.attrs, Attrs):
        _fail(graph, "attrs", f"{_who(n)} has attributes of {type(n.attrs).__name__}", n.loc)
    for region in n.regions:
        verify_graph(region)
