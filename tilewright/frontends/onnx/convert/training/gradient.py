"""Gradient: how a value changes with others, by going back through the nodes that compute it.

The nodes from `xs` to `y` are those that are in the graph already. Where the node gives other
values for `xs` than those, the nodes are added once more with the values it gives. Then each node
hands the gradient of its result on to its operands, the last one first; `RULES` has how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import pi, sqrt

from tilewright.arith.expr import Expr, const
from tilewright.frontends.onnx.context import Context, Converter, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.traced_value import Formula, where
from tilewright.ir.graph.nodes import Node
from tilewright.ir.types import Shape
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.reduction.softmax import AxisAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, TransposeAttrs

DOMAIN = "ai.onnx.preview.training"


@dataclass(frozen=True)
class _Step:
    """A node on the way back: its operands, its result and the gradient of that."""

    node: Node
    ins: Sequence[Formula]
    y: Formula
    g: Formula

    @property
    def x(self) -> Formula:
        """The first operand."""
        return self.ins[0]

    def zero(self) -> Formula:
        """Nothing, in the gradient's type."""
        return self.g.number(0)


# The gradients of a node's operands; they may still have the shape to which operands broadcast.
Rule = Callable[[_Step], Sequence[Formula | None]]


def _shape(x: Formula) -> Shape:
    return x.c.type(x.name).shape


def _of_one(rule: Callable[[_Step], Formula]) -> Rule:
    return lambda s: (rule(s),)


def _pow(s: _Step) -> Sequence[Formula]:
    base, exponent = s.ins[0], s.ins[1].cast(s.g.dtype)
    return s.g * exponent * base.apply("pow", exponent - 1), s.g * s.y * base.apply("log")


def _matmul(s: _Step) -> Sequence[Formula]:
    a, b = s.ins
    if min(len(_shape(a)), len(_shape(b))) < 2:
        raise s.g.n.unsupported("the gradient of a product with a vector", "use matrices")
    return s.g.apply("matmul", _swapped(b)), _swapped(a).apply("matmul", s.g)


def _swapped(x: Formula) -> Formula:
    rank = len(_shape(x))
    return x.apply("transpose", attrs=TransposeAttrs((*range(rank - 2), rank - 1, rank - 2)))


def _transpose(s: _Step) -> Formula:
    assert isinstance(s.node.attrs, TransposeAttrs)
    perm = s.node.attrs.perm
    return s.g.apply("transpose", attrs=TransposeAttrs(tuple(map(perm.index, range(len(perm))))))


def _reshape(s: _Step) -> Formula:
    return _reshaped(s.g, _shape(s.x))


def _reshaped(x: Formula, shape: Sequence[Expr]) -> Formula:
    return Formula(x.c, x.n, add_reshape(x.c, x.n, x.name, shape))


def _spread(s: _Step) -> Formula:
    """The gradient of a sum: the same for all that was added up."""
    assert isinstance(s.node.attrs, ReduceAttrs)
    shape = _shape(s.x)
    axes = {normalize_axis("Gradient", a, len(shape)) for a in s.node.attrs.axes}
    kept = [const(1) if i in axes else d for i, d in enumerate(shape)]
    return _reshaped(s.g, kept).apply("expand", attrs=ExpandAttrs(shape))


def _mean(s: _Step) -> Formula:
    ones = Formula(s.g.c, s.g.n, _full(s.g.c, s.g.n, s.x.name, 1.0))
    count = ones.apply("reduce_sum", attrs=s.node.attrs)
    return _spread(replace(s, g=s.g / count))


def _softmax(s: _Step) -> Formula:
    assert isinstance(s.node.attrs, AxisAttrs)
    row = ReduceAttrs((s.node.attrs.axis,), keepdims=True)
    return s.y * (s.g - (s.g * s.y).apply("reduce_sum", attrs=row))


def _log_softmax(s: _Step) -> Formula:
    assert isinstance(s.node.attrs, AxisAttrs)
    row = ReduceAttrs((s.node.attrs.axis,), keepdims=True)
    return s.g - s.y.apply("exp") * s.g.apply("reduce_sum", attrs=row)


def _where(s: _Step) -> Sequence[Formula | None]:
    return None, where(s.x, s.g, s.zero()), where(s.x, s.zero(), s.g)


def _extreme(s: _Step) -> Sequence[Formula]:
    """Of the greatest or least operand; where several are, each gets the whole."""
    return tuple(where(x.apply("equal", s.y), s.g, s.zero()) for x in s.ins)


RULES: dict[str, Rule] = {
    "add": lambda s: (s.g, s.g),
    "sub": lambda s: (s.g, -s.g),
    "mul": lambda s: (s.g * s.ins[1], s.g * s.ins[0]),
    "div": lambda s: (s.g / s.ins[1], -(s.g * s.y / s.ins[1])),
    "pow": _pow,
    "matmul": _matmul,
    "where": _where,
    "max": _extreme,
    "min": _extreme,
    "neg": _of_one(lambda s: -s.g),
    "identity": _of_one(lambda s: s.g),
    "abs": _of_one(lambda s: s.g * s.x.apply("sign")),
    "exp": _of_one(lambda s: s.g * s.y),
    "log": _of_one(lambda s: s.g / s.x),
    "sqrt": _of_one(lambda s: s.g / (s.y * 2)),
    "reciprocal": _of_one(lambda s: -(s.g * s.y * s.y)),
    "sin": _of_one(lambda s: s.g * s.x.apply("cos")),
    "cos": _of_one(lambda s: -(s.g * s.x.apply("sin"))),
    "tanh": _of_one(lambda s: s.g * (1 - s.y * s.y)),
    "sigmoid": _of_one(lambda s: s.g * s.y * (1 - s.y)),
    "softplus": _of_one(lambda s: s.g * s.x.apply("sigmoid")),
    "relu": _of_one(lambda s: where(s.x.apply("greater", 0), s.g, s.zero())),
    "erf": _of_one(lambda s: s.g * (-(s.x * s.x)).apply("exp") * (2 / sqrt(pi))),
    "cast": _of_one(lambda s: s.g.apply("cast", attrs=CastAttrs(s.x.dtype))),
    "expand": _of_one(lambda s: s.g),
    "reshape": _of_one(_reshape),
    "transpose": _of_one(_transpose),
    "reduce_sum": _of_one(_spread),
    "reduce_mean": _of_one(_mean),
    "softmax": _of_one(_softmax),
    "log_softmax": _of_one(_log_softmax),
}


def gradient(c: Context, n: OnnxNode) -> tuple[str, ...]:
    """The gradient of `y` for each of `xs`, at the values that the node gives."""
    given = (*n.strs_attr("xs"), *n.strs_attr("zs", ()))
    y = n.str_attr("y")
    missing = [name for name in (*given, y) if name not in c.values]
    if missing or len(given) != len(n.inputs):
        what = f"{missing[0]!r} is not computed before it" if missing else "xs and zs do not fit"
        raise n.invalid(what)
    if not c.whole:
        raise n.unsupported("it stands in a model that runs in segments", "make all shapes known")
    names = {c.values[name]: n.required(i) for i, name in enumerate(given)}
    wanted = [n.required(i) for i in range(len(n.strs_attr("xs")))]
    nodes = _again(c, n, names, c.values[y])
    y = nodes[-1].outputs[0] if nodes else names.get(c.values[y], c.values[y])
    found = _gradients(c, n, nodes, set(wanted), y)
    return tuple(found[x].name if x in found else _full(c, n, x, 0.0) for x in wanted)


def _again(c: Context, n: OnnxNode, names: dict[str, str], y: str) -> list[Node]:
    """The nodes from the given values to `y`, added once more where these are others."""
    path = _path(c.g.nodes, set(names), y)
    if all(old == new for old, new in names.items()):
        return path
    start = len(c.g.nodes)
    for node in path:
        inputs = [names.get(i, i) for i in node.inputs]
        outputs = c.g.add_many(node.op, *inputs, attrs=node.attrs, names=node.outputs, loc=n.loc)
        names.update(zip(node.outputs, outputs, strict=True))
    return c.g.nodes[start:]


def _path(nodes: Sequence[Node], sources: set[str], y: str) -> list[Node]:
    """The nodes that depend on the sources and that `y` depends on, in order."""
    reached = set(sources)
    for node in nodes:
        if not reached.isdisjoint(node.inputs) and sources.isdisjoint(node.outputs):
            reached.update(node.outputs)
    needed, path = {y} - sources, []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs) and not reached.isdisjoint(node.outputs):
            needed.update(i for i in node.inputs if i in reached and i not in sources)
            path.append(node)
    return path[::-1]


def _gradients(
    c: Context, n: OnnxNode, nodes: Sequence[Node], xs: set[str], y: str
) -> dict[str, Formula]:
    """The gradients of all values between `xs` and `y`."""
    found = {y: Formula(c, n, _full(c, n, y, 1.0))}
    inner = xs | {out for node in nodes for out in node.outputs}
    for node in reversed(nodes):
        if node.name not in found:
            continue
        if node.op not in RULES or len(node.outputs) > 1:
            known = ", ".join(sorted(RULES))
            raise n.unsupported(f"the gradient of {node.op}", f"supported: {known}")
        ins = [Formula(c, n, name) for name in node.inputs]
        step = _Step(node, ins, Formula(c, n, node.name), found[node.name])
        for x, g in zip(ins, RULES[node.op](step), strict=True):
            if g is not None and x.name in inner:
                g = _summed(g, x)
                found[x.name] = found[x.name] + g if x.name in found else g
    return found


def _summed(g: Formula, x: Formula) -> Formula:
    """A gradient added up over the dimensions along which its operand was repeated."""
    shape, wide = _shape(x), _shape(g)
    if shape == wide:
        return g
    front = len(wide) - len(shape)
    repeated = [i for i, d in enumerate(shape, front) if d is const(1) and wide[i] is not d]
    axes = (*range(front), *repeated)
    if axes:
        g = g.apply("reduce_sum", attrs=ReduceAttrs(axes, keepdims=True))
    return _reshaped(g, shape)


def _full(c: Context, n: OnnxNode, like: str, value: float) -> str:
    """One number in the shape and type of a value."""
    t = c.type(like)
    return c.add(n, "full", attrs=FullAttrs(t.shape, value, t.dtype))


CONVERTERS: dict[str, Converter] = {f"{DOMAIN}::Gradient": gradient}
