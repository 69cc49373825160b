"""Tensor programs as text: `print_program` and `parse_program`, inverse to each other.

tensor @softmax(x: f32[M, N]) -> y {
  m: f32[M] = [i] max(k in N) x[i, k]
  y: f32[M, N] = [i, j] exp(x[i, j] - m[i])
}
"""

from __future__ import annotations

from tilewright.arith.expr import Expr
from tilewright.arith.text import ExprParser, print_expr
from tilewright.core.dtypes import DTYPES, DType
from tilewright.core.text import Cursor, refuses_deep_text
from tilewright.ir.tensor.nodes import Program, Stage, Tensor

WIDTH = 100


def print_program(program: Program) -> str:
    """The text of a program."""
    inputs = [_print_tensor(t) for t in program.inputs]
    head, tail = f"tensor @{program.name}(", f") -> {', '.join(program.outputs)} {{"
    header = f"{head}{', '.join(inputs)}{tail}"
    if len(header) > WIDTH:
        header = "\n".join((head, *(f"  {t}," for t in inputs), tail))
    return "\n".join((header, *(f"  {print_stage(s)}" for s in program.stages), "}")) + "\n"


def print_stage(stage: Stage) -> str:
    """The line that defines a stage."""
    axes = ", ".join(stage.axes)
    return f"{_print_tensor(stage.tensor)} = [{axes}] {print_expr(stage.body)}"


def _print_tensor(t: Tensor) -> str:
    return f"{t.name}: {t.dtype}[{', '.join(map(print_expr, t.shape))}]"


@refuses_deep_text
def parse_program(source: str, file: str = "") -> Program:
    """The program that `source` spells."""
    parser = _Parser(source, file)
    program = parser.program()
    if parser.cursor.now.kind != "end":
        parser.cursor.fail(f"unexpected {parser.cursor.now.text!r} after the end")
    return program


class _Parser:
    def __init__(self, source: str, file: str) -> None:
        self.cursor = Cursor(source, file)
        self.dtypes: dict[str, DType] = {}
        self.exprs = ExprParser(self.cursor, self.dtypes)

    def program(self) -> Program:
        self.cursor.expect("tensor")
        name = self.cursor.take("ref")[1:]
        self.cursor.expect("(")
        inputs: list[Tensor] = []
        while not self.cursor.accept(")"):
            inputs.append(self.tensor())
            if not self.cursor.peek(")"):
                self.cursor.expect(",")
        self.cursor.expect("->")
        outputs = self.names("{")
        stages: list[Stage] = []
        while not self.cursor.accept("}"):
            stages.append(self.stage())
        return Program(name, tuple(inputs), tuple(stages), outputs)

    def names(self, closing: str) -> tuple[str, ...]:
        found: list[str] = []
        while not self.cursor.accept(closing):
            found.append(self.cursor.take("name"))
            if not self.cursor.peek(closing):
                self.cursor.expect(",")
        return tuple(found)

    def tensor(self) -> Tensor:
        name = self.cursor.take("name")
        self.cursor.expect(":")
        if self.cursor.now.text not in DTYPES:
            self.cursor.fail(f"expected a dtype, found {self.cursor.now.text!r}")
        dtype = DTYPES[self.cursor.take("name")]
        self.cursor.expect("[")
        shape: list[Expr] = []
        while not self.cursor.accept("]"):
            shape.append(self.exprs.parse())
            if not self.cursor.peek("]"):
                self.cursor.expect(",")
        self.dtypes[name] = dtype
        return Tensor(name, dtype, tuple(shape))

    def stage(self) -> Stage:
        start = self.cursor.position
        tensor = self.tensor()
        self.cursor.expect("=")
        self.cursor.expect("[")
        axes = self.names("]")
        stage = Stage(tensor.name, tensor.shape, axes, self.exprs.parse())
        if stage.dtype != tensor.dtype:
            self.cursor.position = start
            self.cursor.fail(f"{tensor.name} is declared {tensor.dtype}, it is {stage.dtype}")
        return stage
