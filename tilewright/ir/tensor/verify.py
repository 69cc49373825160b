"""The rules of tensor programs, checked.

VerifyError[tensor.axis]: stage 'm' uses j, which is no axis of it
   2 |   m: f32[M] = [i] max(k in N) x[j, k]
     |                                 ^
"""

from __future__ import annotations

from tilewright.arith.expr import Broadcast, Expr, Reduce
from tilewright.arith.vector import Lane, Ramp, Shuffle
from tilewright.arith.walk import free_vars, subexpressions
from tilewright.core.dtypes import I64
from tilewright.core.errors import VerifyError
from tilewright.ir.excerpt import excerpt
from tilewright.ir.tensor.nodes import Program, Stage, Tensor
from tilewright.ir.tensor.text import print_program
from tilewright.ir.verify_expr import Fault, Signature, check_dtype, check_expr, check_name


def verify_program(program: Program) -> None:
    """Raise a `VerifyError` if `program` breaks a rule of tensor expressions."""
    verifier = _Verifier(program)
    try:
        verifier.check()
    except Fault as fault:
        lines = print_program(program).splitlines()
        first = len(lines) - 1 - len(program.stages)
        number = 0 if verifier.current is None else first + verifier.current
        raise VerifyError(
            fault.code, fault.message, notes=excerpt(lines, [number], fault.focus), help=fault.help
        ) from None


class _Verifier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.current: int | None = None  # the stage being checked
        self.known: dict[str, Signature] = {}
        self.names: set[str] = set()
        self.axes = {a for s in program.stages for a in (*s.axes, *_reduction_axes(s))}
        self.seen: set[Expr] = set()

    def check(self) -> None:
        for t in self.program.inputs:
            self.declare(t)
        for n, s in enumerate(self.program.stages):
            self.current = n
            self.stage(s)
        self.current = None
        defined = {s.name for s in self.program.stages}
        for name in self.program.outputs:
            if name not in defined:
                raise Fault("tensor.output", f"output {name!r} is no stage of the program", name)
        if not self.program.outputs:
            raise Fault("tensor.output", "the program has no output")

    def declare(self, t: Tensor) -> None:
        check_name(t.name, "tensor", self.names)
        for dim in t.shape:
            self.size(dim)
        self.known[t.name] = (t.dtype, len(t.shape))

    def size(self, e: Expr) -> None:
        """Check a dimension or extent: an index expression over sizes."""
        check_dtype(e, I64, "a dimension")
        check_expr(e, {}, self.seen)
        for name in sorted(free_vars(e) & self.axes):
            raise Fault("tensor.axis", f"the axis {name} stands in a dimension", name)

    def stage(self, s: Stage) -> None:
        if len(s.axes) != len(s.shape):
            message = f"stage {s.name!r} has {len(s.shape)} dimensions and {len(s.axes)} axes"
            raise Fault("tensor.axis", message, f"[{', '.join(s.axes)}]")
        mine: set[str] = set()
        for axis in (*s.axes, *_reduction_axes(s)):
            check_name(axis, "axis", mine)
        inner = s.body
        if isinstance(inner, Reduce):
            for _, extent in inner.axes:
                self.size(extent)
            if not inner.axes:
                raise Fault("tensor.reduction", f"stage {s.name!r} reduces over no axis")
            inner = inner.body
        check_expr(s.body, self.known, self.seen)
        self.body(s, inner)
        for name in sorted((free_vars(inner) & self.axes) - mine):
            raise Fault(
                "tensor.axis", f"stage {s.name!r} uses {name}, which is no axis of it", name
            )
        self.declare(s.tensor)

    def body(self, s: Stage, inner: Expr) -> None:
        for e in subexpressions(inner):
            if isinstance(e, Reduce):
                message = f"the reduction in stage {s.name!r} is not at the root of its body"
                raise Fault("tensor.reduction", message, str(e), "give it a stage of its own")
            if isinstance(e, Ramp | Broadcast | Lane | Shuffle):
                raise Fault("tensor.vector", f"{e} is a vector; these come after lowering", str(e))


def _reduction_axes(s: Stage) -> tuple[str, ...]:
    return tuple(v.name for v, _ in s.body.axes) if isinstance(s.body, Reduce) else ()
