"""Graphs as text: what `print_graph` prints and `parse_graph`, in `parse.py`, reads.

graph @block(x: f32[N, 64], s: f32[] = const 0.5, "in/w": f32[64, 8] = const "sha1:1f..") {
  %0: f32[N, 8] = matmul(%x, %"in/w")
  %1: f32[N, 8] = fused(%0, %s) {kind="injective"}
    graph @mul(x0: f32[N, 8], x1: f32[]) {
      %y: f32[N, 8] = mul(%x0, %x1)
      return %y
    }
  %a: f32[N, 2], %b: i64[N, 2] = topk(%1) {k=2}
  return %a, %b
}

The let form (administrative normal form) says the same: each `let` binds results that the rest of
the graph sees, a nested graph is scoped by the `let` that holds it, and the result is a tuple.

graph @block(x: f32[N, 64], w: f32[64, 8] = const "sha1:1f..") =
  let %0: f32[N, 8] = matmul(%x, %w) in
  let %1: f32[N, 8] = fused(%0) {kind="injective"}
    graph @relu(x0: f32[N, 8]) =
      let %y: f32[N, 8] = relu(%x0) in
      (%y)
  in
  (%1)

What the sizes must fulfil comes first: `check N % 4 == 0, "what it is for"`.

Constants of up to `INLINE_LIMIT` elements carry their data, the others a hash of it, and the
parser is given their arrays. An absent input is `_`; attributes that have their default are left
out; where nodes came from is not printed.
"""

from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields

import numpy as np

from tilewright.arith.expr import Const, Expr, const
from tilewright.arith.text import print_expr
from tilewright.core.dtypes import F32, I64, DType, from_numpy
from tilewright.ir.graph.constant_hash import content_hash
from tilewright.ir.graph.nodes import Attrs, Check, Constant, Graph, Node

INLINE_LIMIT = 16
FORMS = ("ssa", "let")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_REFERENCE = re.compile(r"[A-Za-z0-9_.]+")
_INLINE_KINDS = ("float", "int", "uint", "bool", "string")


def print_graph(graph: Graph, form: str = "ssa") -> str:
    """The text of a graph in one of `FORMS`, one node a line."""
    assert form in FORMS, form
    lines = _let_lines if form == "let" else _graph_lines
    return "\n".join(lines(graph, "")) + "\n"


def _head(graph: Graph) -> str:
    inputs = [f"{_bare(v.name)}: {v.type}" for v in graph.inputs]
    constants = [f"{_bare(c.name)}: {c.type} = {_constant(c)}" for c in graph.constants]
    return f"graph {_reference(graph.name, '@')}({', '.join(inputs + constants)})"


def _check(c: Check) -> str:
    return f"check {print_expr(c.condition)}, {json.dumps(c.message)}"


def _let_lines(graph: Graph, indent: str) -> list[str]:
    lines = [f"{indent}{_head(graph)} ="]
    lines += [f"{indent}  {_check(c)} in" for c in graph.checks]
    for n in graph.nodes:
        lines.append(f"{indent}  let {print_node(n)}")
        for region in n.regions:
            lines += _let_lines(region, indent + "    ")
        if n.regions:
            lines.append(f"{indent}  in")
        else:
            lines[-1] += " in"
    lines.append(f"{indent}  ({', '.join(map(_reference, graph.outputs))})")
    return lines


def _graph_lines(graph: Graph, indent: str) -> list[str]:
    lines = [f"{indent}{_head(graph)} {{"]
    lines += [f"{indent}  {_check(c)}" for c in graph.checks]
    for n in graph.nodes:
        lines.append(f"{indent}  {print_node(n)}")
        for region in n.regions:
            lines += _graph_lines(region, indent + "    ")
    lines.append(f"{indent}  return {', '.join(map(_reference, graph.outputs))}".rstrip())
    lines.append(f"{indent}}}")
    return lines


def print_node(n: Node) -> str:
    """One line: results, operator, operands and attributes, without regions."""
    results = ", ".join(f"{_reference(o)}: {t}" for o, t in zip(n.outputs, n.types, strict=True))
    operands = ", ".join(_reference(i) if i else "_" for i in n.inputs)
    attrs = print_attrs(n.attrs)
    return f"{results} = {n.op}({operands})" + (f" {{{attrs}}}" if attrs else "")


def print_attrs(attrs: Attrs) -> str:
    """`pads=[1, 1], strides=[2, 2]`; what has its default is left out."""
    return ", ".join(f"{name}={_attribute(v)}" for name, v in _shown_attrs(attrs))


def _bare(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _reference(name: str, sign: str = "%") -> str:
    return sign + (name if _REFERENCE.fullmatch(name) else json.dumps(name))


def is_inline(c: Constant) -> bool:
    """Whether the text of a graph holds the data of a constant."""
    return c.data.size <= INLINE_LIMIT and c.type.dtype.kind in _INLINE_KINDS


def _constant(c: Constant) -> str:
    if not is_inline(c):
        return f'const "{content_hash(c.data)}"'
    items = [_element(x) for x in np.asarray(c.data).reshape(-1)]
    return f"const {items[0]}" if c.data.ndim == 0 else f"const [{', '.join(items)}]"


def _element(x: object) -> str:
    if isinstance(x, str | bytes):
        return json.dumps(x if isinstance(x, str) else x.decode())
    if isinstance(x, bool | np.bool_):
        return "true" if x else "false"
    assert isinstance(x, np.generic)
    if from_numpy(x.dtype).is_integer:
        return str(int(x))
    # The shortest digits that give this element back when read as a double and then rounded.
    text = str(x) if not from_numpy(x.dtype).is_small else repr(float(x))
    exact = np.isnan(x) or x.dtype.type(float(text)) == x
    return text if exact else repr(float(x))


def _shown_attrs(attrs: Attrs) -> list[tuple[str, object]]:
    shown = []
    for f in fields(attrs):
        value = getattr(attrs, f.name)
        if f.default is MISSING or type(value) is not type(f.default) or value != f.default:
            shown.append((f.name, value))
    return shown


def _attribute(value: object) -> str:
    match value:
        case None:
            return "none"
        case tuple():
            return f"[{', '.join(map(_attribute, value))}]"
        case str():
            return json.dumps(value)
        case DType():
            return value.name
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _attribute(const(value, F32 if isinstance(value, float) else I64))
        case Const():
            return print_expr(value).strip("()")
        case Expr():
            return print_expr(value)
    raise AssertionError(f"no text for an attribute of {type(value).__name__}")
