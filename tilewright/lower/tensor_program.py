"""A fused group → one tensor program: the operators' expressions, one after another.

The group is a small graph; its inputs become the program's inputs, scalar constants literals.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Load, const, select
from tilewright.arith.walk import rewrite
from tilewright.core.errors import Error, LoweringError
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Program, Stage, Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.registry import get_op


def group_program(group: Graph) -> Program:
    """The tensor program that a group means; every operator must have tensor expressions."""
    b = Builder(group.name)
    tensors: dict[str, Tensor] = {}
    for v in group.inputs:
        assert isinstance(v.type, TensorType)
        tensors[v.name] = b.input(v.name, v.type.dtype, v.type.shape)
    literals = {c.name: c.data.reshape(-1)[0].item() for c in group.constants}
    for c in group.constants:
        tensors[c.name] = Tensor(c.name, c.type.dtype, c.type.shape)
    for n in group.nodes:
        _append(b, n, tensors)
    program = b.program(*(tensors[o] for o in group.outputs))
    return _with_literals(program, literals)


def _append(b: Builder, n: Node, tensors: dict[str, Tensor]) -> None:
    row = get_op(n.op)
    if row.te is None:
        raise LoweringError("lower.no-expression", f"{n.op} has no tensor expression", loc=n.loc)
    b.scope, sites = n.op, b.sites
    inputs = [tensors[i] if i else None for i in n.inputs]
    try:
        results = row.te(b, n.attrs, inputs, n.types)
    except Error as error:
        raise error.at(n.loc) from None
    made = row.checks(n.attrs, inputs)
    assert b.sites - sites == made, f"{n.op} makes {b.sites - sites} checks, its row says {made}"
    results = results if isinstance(results, tuple) else (results,)
    tensors.update(zip(n.outputs, results, strict=True))
    b.scope = ""


def _with_literals(program: Program, literals: dict[str, float]) -> Program:
    """Replace reads of scalar constants by their values."""
    if not literals:
        return program

    def literal(e: Expr) -> Expr | None:
        if not isinstance(e, Load) or e.buffer not in literals:
            return None
        number = const(literals[e.buffer], e.dtype)
        return number if e.mask is None else select(e.mask, number, const(0, e.dtype))

    def stage(s: Stage) -> Stage:
        return Stage(s.name, s.shape, s.axes, rewrite(s.body, literal))

    return Program(program.name, program.inputs, tuple(map(stage, program.stages)), program.outputs)
