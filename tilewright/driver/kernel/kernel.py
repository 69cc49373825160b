"""One kernel of a model in each of its four stages, and what a step of the model asks of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, substitute
from tilewright.finalize.report_indices import STATUS
from tilewright.ir.loop.nodes import Buffer, Func, Layout
from tilewright.ir.loop.walk import bound_variables, expressions
from tilewright.ir.types import Shape
from tilewright.lower.lower_kernel import LoweredKernel
from tilewright.schedule.builtin.rules import ScheduledFunc


@dataclass(frozen=True)
class Kernel:
    """A kernel: its loops lowered, scheduled and finalized, and the LLVM text made of those.

    Steps of the model that share a kernel differ in `lowered.dims`. Sizes, work and workspaces are
    given in terms of the model's dimensions.
    """

    lowered: LoweredKernel
    scheduled: ScheduledFunc
    finalized: Func
    llvm: str
    # The names of the dimensions that the compiled function takes.
    dim_params: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the compiled function."""
        return self.finalized.name

    @property
    def rule(self) -> str:
        """The rule that scheduled it."""
        return self.scheduled.rule

    @cached_property
    def trace(self) -> str:
        """The schedule, one primitive a line."""
        return str(self.scheduled.trace)

    @cached_property
    def dim_args(self) -> tuple[Expr, ...]:
        """What each of `dim_params` is in the model."""
        return tuple(self._in_model(Var(name)) for name in self.dim_params)

    @cached_property
    def workspaces(self) -> tuple[Buffer, ...]:
        """Buffers that the caller provides besides inputs and outputs."""
        extra = self.finalized.params[len(self.lowered.func.params) :]
        return tuple(
            replace(w, shape=tuple(map(self._in_model, w.shape))) for w in extra if w.name != STATUS
        )

    @property
    def status_bytes(self) -> int:
        """The bytes of the words that its index checks write, the last of its parameters."""
        last = self.finalized.params[-1] if self.finalized.params else None
        if last is None or last.name != STATUS:
            return 0
        return last.dtype.bytes * (as_int(last.shape[0]) or 0)

    @cached_property
    def layouts(self) -> dict[int, Layout]:
        """The layouts chosen for constant parameters, by their number."""
        names = [p.name for p in self.lowered.func.params]
        return {names.index(name): layout for name, layout in self.scheduled.func.layouts}

    @cached_property
    def strided_params(self) -> dict[str, tuple[Shape, Shape]]:
        """Parameters that are strided views: their shape, and that by which they are laid out."""
        parents = self.lowered.parent_shapes
        return {
            p.name: (p.shape, parents[p.name])
            for p in self.lowered.func.params
            if p.name in parents
        }

    @cached_property
    def flops(self) -> Expr:
        """The arithmetic operations of a call."""
        return self._in_model(self.lowered.flops)

    @cached_property
    def param_bytes(self) -> tuple[Expr, ...]:
        """For each parameter, the bytes read or written by a call."""
        return tuple(map(self._in_model, self.lowered.param_bytes))

    @cached_property
    def bytes(self) -> Expr:
        """The bytes read and written by a call."""
        return simplify(sum(self.param_bytes, start=const(0)))

    def _in_model(self, e: Expr) -> Expr:
        return simplify(substitute(e, self.lowered.dims))


def free_dims(func: Func) -> tuple[str, ...]:
    """The symbolic dimensions that a function mentions: free variables that nothing binds."""
    bound = bound_variables(func.body)
    used: set[str] = set()
    for e in expressions(func.body):
        used |= free_vars(e)
    for p in func.params:
        for d in p.shape:
            used |= free_vars(d)
    return tuple(sorted(used - bound))
