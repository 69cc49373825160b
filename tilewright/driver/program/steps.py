"""The steps of a model's host program, and where its values lie.

A fused graph is a sequence of kernel calls, checks, conditionals and loops (`linearize` makes it).
A view lies in the buffer of the value that it is a view of, the parts of a concatenation in that of
the whole, and the results of both branches of an `if` in that of the node's result:
`StepSequence.base_buffer` and `StepSequence.strided_view` say where.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.core.errors import Loc
from tilewright.driver.program.host_predicates import host_predicate
from tilewright.ir.graph.nodes import Check, Constant, Node
from tilewright.ir.types import Shape, TensorType, Type
from tilewright.lower.lower_kernel import StridedParams
from tilewright.ops.control.loop import LoopAttrs
from tilewright.ops.tensor.subviews import Subview, is_contiguous, linear_offset, parent_shape_as


@dataclass(frozen=True)
class StridedView:
    """Where a value lies in its base buffer: the elements before it, and the parent's shape.

    `parent_shape` is the shape by which it is laid out, `None` if that is its own.
    """

    offset: Expr
    parent_shape: Shape | None = None


_WHOLE = StridedView(const(0))


@dataclass(frozen=True)
class KernelStep:
    """One kernel call: a fused group, or an operator that is given as loops.

    `types` are those of its inputs. `constants` are the parameters whose layout the kernel may
    choose, by number; `strided` those that are strided views. `aligned` says that all of its values
    begin on a boundary.
    """

    node: Node
    types: tuple[Type | None, ...]
    constants: frozenset[int] = frozenset()
    strided: StridedParams = ()
    aligned: bool = True


@dataclass(frozen=True)
class IfStep:
    """Two branches, of which one is run: the value or the expression that decides, and both.

    `dynamic_dims` are dimensions that are known from there on, by name, as either branch has them.
    """

    condition: str | Expr
    branches: tuple[tuple[Item, ...], tuple[Item, ...]]
    dynamic_dims: dict[str, tuple[Expr, Expr]]


@dataclass(frozen=True)
class BindDimStep:
    """A scalar in memory that is from there on the value of a dimension, at most `bound`."""

    value: str
    name: str
    bound: Expr
    loc: Loc


@dataclass(frozen=True)
class CarriedValue:
    """A value that a loop carries: at the start, inside an iteration, after it, and at the end.

    `spare` is a second buffer like that of the result: an iteration reads one, writes the other.
    """

    initial: str
    read: str
    written: str
    result: str
    spare: str


@dataclass(frozen=True)
class WhileStep:
    """A loop; `begin` and `going` are the conditions of the first and of a further iteration."""

    attrs: LoopAttrs
    items: tuple[Item, ...]
    carried: tuple[CarriedValue, ...]
    begin: str
    going: str


Item = KernelStep | Check | IfStep | BindDimStep | WhileStep


@dataclass
class StepSequence:
    """All steps of a model in order, and the values that they read and write."""

    items: tuple[Item, ...] = ()
    # The kernel calls, those of branches and loops included.
    steps: list[KernelStep] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    subviews: dict[str, Subview] = field(default_factory=dict)
    # The kernel step before which control flow last reads a value: a branch reads its condition,
    # and in a loop the first step may come again after the last.
    last_control_use: dict[str, int] = field(default_factory=dict)
    # What each data-dependent dimension can be: one of two values, or where the first is 0
    # anything up to the second.
    dynamic_dims: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    # The same of the induction variables of loops.
    induction_vars: dict[str, tuple[Expr, Expr]] = field(default_factory=dict)
    # Values that an iteration reads or writes in alternating buffers, numbered.
    carried: dict[str, int] = field(default_factory=dict)
    # Values that are live across a whole loop: the first and the last of its steps.
    live_across_loop: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Inputs that the host may compute conditions from, and what computes each other value.
    host_inputs: dict[str, Expr] = field(default_factory=dict)
    producers: dict[str, Node] = field(default_factory=dict)
    # The names of those inputs that a condition is computed from.
    host_scalars: set[str] = field(default_factory=set)

    @property
    def limits(self) -> dict[str, tuple[Expr, Expr]]:
        """The bounds of each dimension that is not known when memory is planned."""
        return {**self.dynamic_dims, **self.induction_vars}

    def host_predicate(self, value: str) -> Expr | None:
        """A condition as the host can compute it from inputs, if it can."""
        if not self.host_inputs:
            return None
        return host_predicate(value, self.host_inputs, self.constants, self.producers)

    def use_in_control(self, value: str) -> None:
        """Note that control flow reads a value after the steps so far."""
        last = self.last_control_use.get(value, 0)
        self.last_control_use[value] = max(last, len(self.steps))

    def base_buffer(self, value: str) -> str:
        """The value in whose buffer `value` lies."""
        while value in self.subviews:
            value = self.subviews[value].parent
        return value

    def strided_view(self, value: str) -> StridedView:
        """Where in its base buffer `value` lies."""
        if value not in self.subviews:
            return _WHOLE
        here = self.subviews[value]
        outer, wide = self.strided_view(here.parent), self.shape(here.parent)
        if here.starts is None:
            parent = outer.parent_shape
            if parent is None:
                return outer
            return StridedView(outer.offset, parent_shape_as(parent, wide, here.shape))
        parent = outer.parent_shape or wide
        offset = simplify(outer.offset + linear_offset(here.starts, parent))
        if is_contiguous(here.shape, parent):
            return StridedView(offset)
        return StridedView(offset, parent_shape_as(parent, here.shape, self.shape(value)))

    def is_whole_buffer(self, value: str) -> bool:
        """Whether a value takes all of its base buffer."""
        while value in self.subviews:
            if self.subviews[value].starts is not None:
                return False
            value = self.subviews[value].parent
        return True

    def tensor(self, value: str) -> TensorType:
        """The type of a value."""
        t = self.types[value]
        assert isinstance(t, TensorType)
        return t

    def shape(self, value: str) -> Shape:
        """The shape of a value."""
        return self.tensor(value).shape
