"""The parser of graphs; the grammar stands in `text.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np

from tilewright.arith.expr import Const, Expr
from tilewright.arith.text import ExprParser
from tilewright.core.dtypes import BOOL, DTYPES, F32, I64, STRING
from tilewright.core.errors import Error, Loc, ParseError
from tilewright.core.text import Cursor, refuses_deep_text
from tilewright.ir.graph.constant_hash import content_hash
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, Check, Constant, Graph, Node, Value
from tilewright.ir.types import OptionalType, SequenceType, TensorType, Type

MakeAttrs = Callable[[str, dict[str, object]], Attrs]


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


@refuses_deep_text
def parse_type(text: str) -> Type:
    """The type that `f32[N, 3]` spells."""
    parser = _Parser(Cursor(text, ""), lambda op, values: NO_ATTRS, {})
    type = parser.type()
    if parser.cursor.now.kind != "end":
        parser.cursor.fail(f"unexpected {parser.cursor.now.text!r} after the type")
    return type


def parse_attributes(text: str) -> dict[str, object]:
    """The values of `pads=[1, 1], strides=[2, 2]`."""
    return _Parser(Cursor(f"{text}}}", ""), lambda op, values: NO_ATTRS, {}).attributes()


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
