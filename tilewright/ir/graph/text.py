"""Graphs as text: `print_graph` and `parse_graph`.

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
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields

import numpy as np

from tilewright.arith.expr import Const, Expr, const
from tilewright.arith.text import ExprParser, print_expr
from tilewright.core.dtypes import BOOL, DTYPES, F32, I64, STRING, DType, from_numpy
from tilewright.core.errors import Error, Loc, ParseError
from tilewright.core.text import Cursor, refuses_deep_text
from tilewright.ir.graph.constant_hash import content_hash
from tilewright.ir.graph.nodes import Attrs, Check, Constant, Graph, Node, Value
from tilewright.ir.types import OptionalType, SequenceType, TensorType, Type

INLINE_LIMIT = 16
FORMS = ("ssa", "let")
MakeAttrs = Callable[[str, dict[str, object]], Attrs]

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


@refuses_deep_text
def parse_graph(
    text: str,
    make_attrs: MakeAttrs,
    constants: Mapping[str, np.ndarray] | None = None,
    file: str = "",
) -> Graph:
    """The graph that `text` spells.

    `make_attrs` builds an operator's attributes from values (numbers, strings, expressions, tuples
    of them); `constants` has, by name, the arrays of constants whose data the text does not hold.
    """
    parser = _Parser(Cursor(text, file), make_attrs, constants or {})
    graph = parser.graph()
    if parser.cursor.now.kind != "end":
        parser.cursor.fail(f"unexpected {parser.cursor.now.text!r} after the graph")
    return graph


class _Parser:
    def __init__(
        self, cursor: Cursor, make_attrs: MakeAttrs, arrays: Mapping[str, np.ndarray]
    ) -> None:
        self.cursor = cursor
        self.make_attrs = make_attrs
        self.arrays = arrays
        self.exprs = ExprParser(cursor, {})

    def graph(self) -> Graph:
        self.cursor.expect("graph")
        name = self.reference("@")
        inputs: list[Value] = []
        constants: list[Constant] = []
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            self.parameter(inputs, constants)
            if not self.cursor.peek(")"):
                self.cursor.expect(",")
        if self.cursor.accept("="):
            checks, nodes, outputs = self.let_body()
        else:
            self.cursor.expect("{")
            checks, nodes, outputs = self.body()
        parts = tuple(inputs), tuple(constants), tuple(nodes), outputs
        return Graph(name, *parts, checks=tuple(checks))

    def body(self) -> tuple[list[Check], list[Node], tuple[str, ...]]:
        checks: list[Check] = []
        while self.cursor.accept("check"):
            checks.append(self.check())
        nodes: list[Node] = []
        while not self.cursor.accept("return"):
            nodes.append(self.node())
        return checks, nodes, self.references("}")

    def let_body(self) -> tuple[list[Check], list[Node], tuple[str, ...]]:
        checks: list[Check] = []
        while self.cursor.accept("check"):
            checks.append(self.check())
            self.cursor.expect("in")
        nodes: list[Node] = []
        while self.cursor.accept("let"):
            nodes.append(self.node())
            self.cursor.expect("in")
        self.cursor.expect("(")
        return checks, nodes, self.references(")")

    def check(self) -> Check:
        condition = self.exprs.parse()
        self.cursor.expect(",")
        return Check(condition, json.loads(self.cursor.take("string")))

    def references(self, end: str) -> tuple[str, ...]:
        names: list[str] = []
        while not self.cursor.accept(end):
            names.append(self.reference("%"))
            if not self.cursor.peek(end):
                self.cursor.expect(",")
        return tuple(names)

    def reference(self, sign: str) -> str:
        token = self.cursor.now
        if token.kind != "ref" or not token.text.startswith(sign):
            self.cursor.fail(f"expected a name with {sign!r}, found {token.text or 'the end'!r}")
        self.cursor.position += 1
        name = token.text[1:]
        return json.loads(name) if name.startswith('"') else name

    def parameter(self, inputs: list[Value], constants: list[Constant]) -> None:
        quoted = self.cursor.now.kind == "string"
        name = json.loads(self.cursor.take("string")) if quoted else self.cursor.take("name")
        self.cursor.expect(":")
        type = self.type()
        if not self.cursor.accept("="):
            inputs.append(Value(name, type))
            return
        self.cursor.expect("const")
        if not isinstance(type, TensorType):
            self.cursor.fail(f"constant {name!r} must be a tensor")
        constants.append(Constant(name, type, self.data(name, type)))

    def type(self) -> Type:
        name = self.cursor.take("name")
        if name in ("seq", "optional"):
            self.cursor.expect("(")
            inner = self.type()
            self.cursor.expect(")")
            return SequenceType(inner) if name == "seq" else OptionalType(inner)
        if name not in DTYPES:
            self.cursor.position -= 1
            self.cursor.fail(f"no type named {name!r}")
        self.cursor.expect("[")
        shape: list[Expr] = []
        while not self.cursor.accept("]"):
            shape.append(self.exprs.parse())
            if not self.cursor.peek("]"):
                self.cursor.expect(",")
        return TensorType(DTYPES[name], tuple(shape))

    def data(self, name: str, type: TensorType) -> np.ndarray:
        token = self.cursor.now
        if token.kind == "string" and token.text.startswith('"sha1:'):
            self.cursor.position += 1
            return self.stored(name, type, json.loads(token.text), token.line, token.column)
        shape = type.static_shape
        if shape is None:
            self.cursor.fail(f"constant {name!r} has a symbolic shape")
        items = [self.element()] if not self.cursor.accept("[") else self.elements()
        if len(items) != np.prod(shape, dtype=int):
            self.cursor.fail(f"constant {name!r} of {type} is given {len(items)} elements")
        stored = np.dtype(object) if type.dtype == STRING else type.dtype.numpy
        return np.array(items, stored).reshape(shape)

    def stored(
        self, name: str, type: TensorType, wanted: str, line: int, column: int
    ) -> np.ndarray:
        """The array of a constant that the text only names by its hash."""
        found = self.arrays.get(name)
        if found is not None and found.dtype.kind == "V":  # files have no names for small types
            found = found.view(type.dtype.numpy)
        if found is not None and content_hash(found) == wanted:
            return found
        what = "is not given" if found is None else "is given with other contents"
        raise ParseError(
            "parse.constant",
            f"the data of constant {name!r} {what}",
            loc=Loc(self.cursor.file, "", line, column),
            help="the text holds only its hash; pass the array as constants={name: array}",
        )

    def elements(self) -> list[object]:
        items: list[object] = []
        while not self.cursor.accept("]"):
            items.append(self.element())
            if not self.cursor.peek("]"):
                self.cursor.expect(",")
        return items

    def element(self) -> object:
        if self.cursor.now.kind == "string":
            return json.loads(self.cursor.take("string"))
        sign = -1 if self.cursor.accept("-") else 1
        token = self.cursor.now
        self.cursor.position += 1
        if token.text in ("true", "false"):
            return token.text == "true"
        if token.kind == "int":
            return sign * int(token.text)
        if token.kind == "float" or token.text in ("inf", "nan"):
            return sign * float(token.text)
        self.cursor.position -= 1
        self.cursor.fail(f"expected a number, found {token.text or 'the end'!r}")

    def node(self) -> Node:
        start = self.cursor.now
        outputs: list[str] = []
        types: list[Type] = []
        while not self.cursor.accept("="):
            outputs.append(self.reference("%"))
            self.cursor.expect(":")
            types.append(self.type())
            if not self.cursor.peek("="):
                self.cursor.expect(",")
        op = self.cursor.take("name")
        inputs = self.operands()
        values = self.attributes() if self.cursor.accept("{") else {}
        try:
            attrs = self.make_attrs(op, values)
        except Error as error:
            raise error.at(Loc(self.cursor.file, "", start.line, start.column)) from None
        regions: list[Graph] = []
        while self.cursor.peek("graph"):
            regions.append(self.graph())
        return Node(op, inputs, tuple(outputs), tuple(types), attrs, tuple(regions))

    def operands(self) -> tuple[str, ...]:
        self.cursor.expect("(")
        inputs: list[str] = []
        while not self.cursor.accept(")"):
            inputs.append("" if self.cursor.accept("_") else self.reference("%"))
            if not self.cursor.peek(")"):
                self.cursor.expect(",")
        return tuple(inputs)

    def attributes(self) -> dict[str, object]:
        values: dict[str, object] = {}
        while not self.cursor.accept("}"):
            name = self.cursor.take("name")
            self.cursor.expect("=")
            values[name] = self.attribute()
            if not self.cursor.peek("}"):
                self.cursor.expect(",")
        return values

    def attribute(self) -> object:
        if self.cursor.now.kind == "string":
            return json.loads(self.cursor.take("string"))
        if self.cursor.accept("["):
            items: list[object] = []
            while not self.cursor.accept("]"):
                items.append(self.attribute())
                if not self.cursor.peek("]"):
                    self.cursor.expect(",")
            return tuple(items)
        e = self.exprs.parse()
        return e.value if isinstance(e, Const) and e.dtype in (BOOL, I64, F32) else e
