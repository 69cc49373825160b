"""From an ATen graph of torch to ours, node by node.

    imported = import_fx(module, {"p_weight": module.weight})

`constants` are the placeholders that are known: parameters and buffers, which our graph refers to
without copying them. Sizes are computed by torch while it traces, so that integers between nodes
are never computed here: each is the expression that torch has for it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule, Node

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import Error, Loc, UnsupportedError
from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.complex_value import (
    ComplexValue,
    interleaved,
    interleaved_type,
    parts,
    real_type,
)
from tilewright.frontends.torch.context import AtenCall, TorchContext, ValueName
from tilewright.frontends.torch.control_flow import CONTROL_FLOW, ControlCall
from tilewright.frontends.torch.convert.complex import complex_converter, is_complex
from tilewright.frontends.torch.dtypes import from_torch
from tilewright.frontends.torch.effects import checked_info, if_all_zero, is_token
from tilewright.frontends.torch.memory_order import axes_in_memory
from tilewright.frontends.torch.source_location import place_of
from tilewright.frontends.torch.symbolic_shapes import Sizes
from tilewright.frontends.torch.table import converter
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import IndexPositionsAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs

# Checks of sizes and of types, which torch makes from what it has assumed while tracing.
_CHECKS = (
    "aten._assert_scalar",
    "aten._assert_tensor_metadata",
    "aten._functional_assert_scalar",
    "aten._functional_sym_constrain",
    "aten.sym_constrain",
)
# How messages begin of the two assertions that torch's one_hot makes of its indices.
_OF_CLASSES = "one_hot: Class values must be "
# What would have to look at values while the model runs.
_OF_VALUES = {
    "aten._assert_async": "assertions on values of tensors are not supported",
    "aten._functional_assert_async": "assertions on values of tensors are not supported",
    "aten._local_scalar_dense": "numbers out of tensors (`item`) are not supported",
}
Kind = type[torch.Tensor] | type[int] | type[complex] | None
_NUMBERS = (torch.SymInt, int, torch.SymBool, bool, torch.SymFloat, float)


@dataclass(frozen=True)
class Imported:
    """A graph, and what its results are for torch: each a tensor, a number or nothing.

    A complex tensor is a real one with a last dimension of two, also as an input. A graph that
    draws random numbers `takes_seed`: its last input is their key. A result of which `axes` are
    told has its axes in that order, the one that they have in memory.
    """

    graph: Graph
    kinds: tuple[Kind, ...]
    axes: tuple[tuple[int, ...] | None, ...]
    takes_seed: bool = False


@dataclass
class _Import:
    """An import under way."""

    module: GraphModule
    constants: Mapping[str, torch.Tensor]
    sizes: Sizes
    c: TorchContext
    in_memory_order: bool = False
    values: dict[Node, Any] = field(default_factory=dict)
    successes: list[str] = field(default_factory=list)  # what must be 0 for results to be right


def import_fx(
    module: GraphModule,
    constants: Mapping[str, torch.Tensor],
    sizes: Sizes | None = None,
    name: str = "torch",
    is_seeded: bool = False,
    in_memory_order: bool = False,
) -> Imported:
    """The graph of a module of ATen calls; `constants` are tensors of placeholders, by name.

    The key of its random numbers is an input where it `is_seeded`. `in_memory_order` gives results
    with their axes as they lie in memory for torch.
    """
    context = TorchContext(GraphBuilder(name, Loc(name)), is_seeded)
    state = _Import(module, constants, sizes or Sizes(), context, in_memory_order)
    for node in module.graph.nodes:
        if node.op == "output":
            return _finished(state, node)
        context.g.loc = place_of(node)
        state.values[node] = _READ[node.op](state, node)
    raise AssertionError("a graph without output")


def refusals(module: GraphModule, sizes: Sizes | None = None) -> dict[Node, Error]:
    """Every node that `import_fx` would refuse, with the reason: all of them, not the first only.

    Results of a node that is refused are inputs of what comes after. A value that cannot be one,
    such as a tensor of a type that we have not, makes all that takes it refused.
    """
    context = TorchContext(GraphBuilder("torch", Loc("torch")), is_seeded=True)
    state = _Import(module, {}, sizes or Sizes(), context)
    found: dict[Node, Error] = {}
    outside: dict[Node, Error] = {}
    for node in module.graph.nodes:
        if node.op == "output":
            break
        state.c.g.loc = place_of(node)
        reason = next((outside[n] for n in node.all_input_nodes if n in outside), None)
        try:
            if reason is not None:
                raise reason
            state.values[node] = _READ[node.op](state, node)
        except Error as error:
            # an item that is not offered is one of a node that is: that must be computed elsewhere
            refused: Any = node.args[0] if node.target is operator.getitem else node
            found[refused] = error
            for one in (refused, node):
                try:
                    state.values[one] = _stand_in(state, one, one.meta.get("val"))
                except UnsupportedError as type_error:
                    outside[one] = type_error
    return found


def _stand_in(state: _Import, node: Node, value: Any) -> Any:
    """What takes the place of the results of a node that is computed elsewhere."""
    if isinstance(value, torch.Tensor):
        return _input(state, node.name, _type(state, value), value.is_complex())
    if isinstance(value, list | tuple):
        return tuple(_stand_in(state, node, item) for item in value)
    if value is None or isinstance(value, _NUMBERS):
        return _number(state, value)
    raise UnsupportedError("torch.graph", f"{node.target} is a {type(value).__name__}")


def _placeholder(state: _Import, node: Node) -> Any:
    value = node.meta.get("val")
    if node.name in state.constants:
        return _constant(state, state.constants[node.name], node.name)
    if is_token(node):
        return None
    if not isinstance(value, torch.Tensor):
        return _number(state, value)
    g, shape, owed = state.c.g, [], []
    for axis, size in enumerate(value.shape):
        wanted = state.sizes.of(size)
        if as_int(wanted) is None and not isinstance(wanted, Var):
            # A size of an input is a number or a name; what the name stands for is checked.
            own = Var(f"{node.name}_{axis}")
            owed.append((own, wanted))
            wanted = own
        shape.append(wanted)
    t = TensorType(from_torch(value.dtype), tuple(shape))
    found = _input(state, node.name, t, value.is_complex())
    for own, wanted in owed:
        g.add_check(own.eq(wanted), f"size {own} of input {node.name} is not {wanted}")
    return found


def _input(state: _Import, name: str, t: TensorType, is_complex: bool) -> Any:
    g = state.c.g
    if is_complex:
        return parts(g, g.input(name, interleaved_type(t)))
    return g.input(name, t)


def _attribute(state: _Import, node: Node) -> Any:
    found: Any = state.module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    if isinstance(found, GraphModule):
        return found
    if not isinstance(found, torch.Tensor):
        raise UnsupportedError(
            "torch.graph",
            f"{node.target} is a {type(found).__name__}",
            loc=place_of(node),
            help="graphs may hold tensors and graphs in them",
        )
    return _constant(state, found, node.name)


def _constant(state: _Import, tensor: torch.Tensor, name: str) -> Any:
    given = state.c.g.constant(to_array(tensor), name)
    return parts(state.c.g, given) if tensor.is_complex() else given


def _call(state: _Import, node: Node) -> Any:
    if node.target is operator.getitem and isinstance(state.values[node.args[0]], tuple):
        return _item(state, node)
    if node.target is operator.getitem and state.values[node.args[0]] is None:
        return None  # a token
    op, loc = str(node.target), place_of(node)
    if op in CONTROL_FLOW:
        args = [_resolved(state, argument) for argument in node.args]
        return CONTROL_FLOW[op](
            ControlCall(state.c, partial(_inlined, state), node.name, args, loc)
        )
    if op.startswith(_CHECKS):
        return None
    if op == "with_effects":
        state.successes.append(state.values[checked_info(node)])
        return None
    if _asserts_classes(op, node):
        return _check_classes(state, node)
    _refuse_values(op, loc)
    value = node.meta.get("val")
    if isinstance(value, _NUMBERS):
        return _number(state, value)
    call = AtenCall(op, node.name, _arguments(state, node), _types(state, value), _used(node), loc)
    convert = complex_converter(call) if is_complex(call) else converter(op, loc)
    result = convert(state.c, call)
    _check(state, call, result)
    return result


def _inlined(
    state: _Import, c: TorchContext, module: GraphModule, given: Sequence[Any]
) -> list[Any]:
    """The results of a module that is a value of the graph, its operators appended where `c` is."""
    inner, values = _Import(module, {}, state.sizes, c), iter(given)
    for node in module.graph.nodes:
        if node.op == "output":
            return [_resolved(inner, result) for result in _results(node)]
        read = _READ[node.op]
        inner.values[node] = next(values) if node.op == "placeholder" else read(inner, node)
    raise AssertionError("a graph without output")


def _asserts_classes(op: str, node: Node) -> bool:
    """Whether one_hot asserts something of its indices."""
    return op == "aten._assert_async.msg" and str(node.args[1]).startswith(_OF_CLASSES)


def _check_classes(state: _Import, node: Node) -> None:
    """From now on indices are checked of which one_hot asserts `all(indices < size)`.

    It asserts first that they are not negative, which is checked with that.
    """
    compared: Any = node.args[0]
    (comparison,) = compared.args
    if "aten.lt" not in str(comparison.target):
        return
    indices, size = comparison.args
    g, name = state.c.g, state.values[indices]
    ones = (1,) * state.c.type(name).rank
    sizes = g.add("dims", attrs=DimsAttrs((state.sizes.of(size),), ones), name="classes")
    attrs = IndexPositionsAttrs(wraps=False)
    state.values[indices] = ValueName(g.add("index_positions", name, sizes, attrs=attrs))


def _refuse_values(op: str, loc: Loc) -> None:
    reason = _OF_VALUES.get(op.rsplit(".", 1)[0])
    if reason is not None:
        raise UnsupportedError(
            "torch.values",
            f"{op}: {reason}",
            loc=loc,
            help="leave it outside of what is compiled, or check before the call",
        )


def _item(state: _Import, node: Node) -> Any:
    source: Any
    source, index = node.args
    found = state.values[source][index]
    if found is None and node.users:
        raise UnsupportedError(
            "torch.operator",
            f"result {index} of {source.target} is not offered",
            loc=place_of(source),
        )
    return found


def _number(state: _Import, value: Any) -> Any:
    """A number that torch knows, or has an expression for; others can only be unused."""
    return state.sizes.of(value) if isinstance(value, torch.SymInt) else value


def _arguments(state: _Import, node: Node) -> dict[str, Any]:
    """All arguments by the names of the schema, absent ones by their default."""
    assert isinstance(node.target, torch._ops.OpOverload), node.target
    found: dict[str, Any] = {}
    for position, argument in enumerate(node.target._schema.arguments):
        if position < len(node.args):
            given = node.args[position]
        else:
            given = node.kwargs.get(argument.name, argument.default_value)
        found[argument.name] = _resolved(state, given)
    return found


def _resolved(state: _Import, given: Any) -> Any:
    if isinstance(given, Node):
        value = state.values[given]
        return ValueName(value) if isinstance(value, str) else value
    if isinstance(given, list | tuple):
        return [_resolved(state, item) for item in given]
    return given


def _types(state: _Import, value: Any) -> tuple[TensorType | None, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(_type(state, v) if isinstance(v, torch.Tensor) else None for v in items)


def _type(state: _Import, value: torch.Tensor) -> TensorType:
    return TensorType(from_torch(value.dtype), tuple(state.sizes.of(d) for d in value.shape))


def _used(node: Node) -> frozenset[int]:
    """Which results are read: the users of a node of several are items of it."""
    items = [user.args[1] for user in node.users if user.target is operator.getitem and user.users]
    return frozenset(i for i in items if isinstance(i, int))


def _check(state: _Import, call: AtenCall, result: Any) -> None:
    """Our own rules must give the types that torch has."""
    found = result if isinstance(result, tuple) else (result,)
    for one, theirs in zip(found, call.results, strict=False):
        ours = one
        if isinstance(one, ComplexValue) and theirs is not None:
            ours, theirs = one.re, real_type(theirs)
        if isinstance(ours, str) and theirs is not None:
            t = state.c.type(ours)
            pairs = zip(map(as_int, t.shape), map(as_int, theirs.shape), strict=False)
            fits = all(a == b for a, b in pairs if a is not None and b is not None)
            same = t.dtype == theirs.dtype and t.rank == theirs.rank and fits
            assert same, f"{call.op} gives {t}, torch says {theirs}"


def _finished(state: _Import, node: Node) -> Imported:
    """The graph; each of its outputs is a value of its own that some node computes."""
    g, names = state.c.g, list[str]()
    kinds: list[Kind] = []
    axes: list[tuple[int, ...] | None] = []
    computed = {out for made in g.nodes for out in made.outputs}
    g.loc = place_of(node)
    for item in _results(node):
        value = state.values[item] if isinstance(item, Node) else item
        if isinstance(value, str) and value in computed and state.successes:
            value = if_all_zero(g, state.successes, value)
            computed.add(value)
            state.successes.clear()
        order = _memory_order(state, item) if isinstance(value, str | ComplexValue) else None
        axes.append(order)
        if isinstance(value, str) and order is not None:
            value = _transposed(g, value, order)
            computed.add(value)
        if value is None:
            kinds.append(None)
        elif isinstance(value, ComplexValue):
            kinds.append(complex)
            if order is not None:
                value = ComplexValue(*(_transposed(g, x, order) for x in (value.re, value.im)))
            names.append(interleaved(g, value))
        elif isinstance(value, str):
            kinds.append(torch.Tensor)
            fresh = value in computed and value not in names
            names.append(value if fresh else g.add("identity", value, name="output"))
        else:
            kinds.append(int)
            number = value if isinstance(value, Expr) else state.sizes.of(value)
            names.append(g.add("dims", attrs=DimsAttrs((number,), ()), name="number"))
    return Imported(g.graph(*names), tuple(kinds), tuple(axes), state.c.seed is not None)


def _results(output: Node) -> Sequence[Any]:
    """What a graph gives."""
    (given,) = output.args
    return given if isinstance(given, list | tuple) else [given]


def _transposed(g: GraphBuilder, value: str, axes: tuple[int, ...]) -> str:
    return g.add("transpose", value, attrs=TransposeAttrs(axes), name="output")


def _memory_order(state: _Import, node: Node) -> tuple[int, ...] | None:
    known = node.meta.get("val")
    if not state.in_memory_order or not isinstance(known, torch.Tensor):
        return None
    return axes_in_memory(known)


_READ = {"placeholder": _placeholder, "get_attr": _attribute, "call_function": _call}
