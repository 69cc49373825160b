"""A node of the fused graph → a kernel: lower, schedule, finalize; equals share one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, substitute
from tilewright.core.errors import ConfigError, Error, Loc
from tilewright.driver.kernel.backend import backend_of
from tilewright.ir.graph.dims import map_exprs
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.loop.nodes import Annotations, Buffer, Func, Layout, Seq
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import blocks, expressions, loops
from tilewright.ir.tensor.nodes import Program
from tilewright.ir.types import Shape, Type
from tilewright.lower.collapse_dims import collapse_in_rooms
from tilewright.lower.dim_params import SizeNames
from tilewright.lower.kernel_cost import param_bytes
from tilewright.lower.loop_nests import program_func
from tilewright.lower.tensor_program import group_program
from tilewright.ops.registry import get_op
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.trace import Trace
from tilewright.target.target import Target

LOOPS = ".loops"
"""The ending of a file with the text of one loop function."""


@dataclass(frozen=True)
class Kernel:
    """One compiled function of the model and everything `explain` says about it.

    It has parameters called `sizes`, which are `given` as formulas of the model's sizes.
    """

    name: str
    func: Func
    plain: Func
    trace: str
    rule: str
    sizes: tuple[str, ...]
    given: tuple[Expr, ...]
    workspaces: tuple[Buffer, ...]
    layouts: dict[int, Layout]
    in_place: tuple[int, ...]
    flops: Expr
    traffic: tuple[Expr, ...]
    note: str = ""
    # Parameters with gaps between their rows: their shape, and that by which they are laid out.
    boxes: Mapping[str, tuple[Shape, Shape]] = field(default_factory=dict)

    @cached_property
    def bytes(self) -> Expr:
        """The bytes read and written; `traffic` has them by parameter."""
        return simplify(sum(self.traffic, start=const(0)))

    def with_sizes(self, given: Mapping[str, Expr]) -> Kernel:
        """The same function for a step of the model in which some of its sizes stand for others."""

        def of_model(e: Expr) -> Expr:
            return simplify(substitute(e, given))

        return replace(
            self,
            given=tuple(of_model(e) for e in self.given),
            workspaces=tuple(
                replace(w, shape=tuple(map(of_model, w.shape))) for w in self.workspaces
            ),
            flops=of_model(self.flops),
            traffic=tuple(map(of_model, self.traffic)),
        )


# Parameters with gaps between their rows, by number: the shapes by which they are laid out.
Rooms = tuple[tuple[int, Shape], ...]
Made = Callable[[Kernel], None]
# Schedules a function for a target; it may choose the layout of the parameters that are named.
MakeSchedule = Callable[[Func, frozenset[str], Any], ScheduledFunc]


@dataclass(frozen=True)
class KernelSource:
    """What a kernel is made from: loops not yet scheduled, and what is known of them.

    `rooms` are by the names of parameters, and have as many dimensions as those.
    """

    func: Func
    in_place: tuple[int, ...]
    flops: Expr
    rooms: Mapping[str, Shape] = field(default_factory=dict)


def group_source(group: Graph, rooms: Rooms = ()) -> KernelSource:
    """A fused group as loops."""
    program = group_program(group)
    params = (*(t.name for t in program.inputs), *program.outputs)
    program, wide = collapse_in_rooms(program, {params[i]: room for i, room in rooms})
    in_place = in_place_inputs(program)
    return KernelSource(program_func(program), in_place, group_flops(group), wide)


def loops_source(node: Node, types: Sequence[Type | None]) -> KernelSource:
    """An operator that no formula gives, as the loops that its row has."""
    row = get_op(node.op)
    assert row.loops is not None, f"{node.op} is neither fused nor given as loops"
    func: Func = row.loops(node.attrs, types, node.types)
    sizes = {name for p in func.params for d in p.shape for name in free_vars(d)}
    bound = {it.name for b in blocks(func.body) for it in b.iters}
    bound |= {loop.name for loop in loops(func.body)}
    assert not sizes & bound, f"{node.op} calls a loop like a size: {sizes & bound}"
    flops = simplify(row.cost(node.attrs, types, node.types))
    return KernelSource(func, (), flops)


class KernelLibrary:
    """The kernels of a model; asking for an equal node again gives the same kernel.

    `made` is told of each new one. `schedule` is the built-in one unless a tool tries another.
    """

    def __init__(
        self,
        target: Target,
        overrides: Path | None = None,
        made: Made = lambda kernel: None,
        schedule: MakeSchedule | None = None,
    ) -> None:
        self.target = target
        self.overrides = overrides
        self.made = made
        self.backend = backend_of(target)
        self.schedule = schedule or self.backend.schedule
        self.kernels: dict[str, Kernel] = {}
        self._known: dict[tuple[Any, ...], Kernel] = {}
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}

    def kernel(
        self,
        node: Node,
        types: Sequence[Type | None],
        packable: frozenset[int],
        rooms: Rooms = (),
        aligned: bool = True,
    ) -> Kernel:
        """The kernel for a node: a fused group, or an operator that is given as loops.

        `types` are those of its inputs; `packable` inputs are constants whose layout it may choose.
        `aligned` says that all its values begin on a boundary.
        """
        notes = self.backend.aligned if aligned else ()
        key = (*_formula(node, types), packable, rooms, notes)
        if key not in self._known:
            try:
                self._known[key] = self._from_loops(node, types, packable, rooms, notes)
            except Error as error:
                raise error.at(node.loc) from None
        return self._known[key]

    def _from_loops(
        self,
        node: Node,
        types: Sequence[Type | None],
        packable: frozenset[int],
        rooms: Rooms,
        notes: Annotations,
    ) -> Kernel:
        """The kernel of a node not met before; other formulas may have given the same loops."""
        assert node.regions or not rooms, f"{node.op} does not take values with gaps"
        names = SizeNames()
        if node.regions:
            group = names.named_group(node.regions[0])
            source = group_source(group, map_exprs(rooms, names.known))
        else:
            source = loops_source(node, types)
        noted = replace(source.func, annotations=(*source.func.annotations, *notes))
        source = replace(source, func=noted)
        key = f"{print_func(source.func)}{sorted(packable)}{sorted(source.rooms.items())}"
        if key not in self.kernels:
            self.kernels[key] = self._build(source, packable)
            self.made(self.kernels[key])
        return self.kernels[key].with_sizes(names.given)

    def _build(self, source: KernelSource, packable: frozenset[int]) -> Kernel:
        func = replace(source.func, name=self._name(source.func.name))
        inputs = [p.name for p in func.params]
        constants = frozenset(inputs[i] for i in packable)
        scheduled = self._overridden(self.schedule(func, constants, self.target))
        plain = self.backend.finalize(_widened(scheduled.func, source.rooms), self.target)
        sizes = _sizes(plain)
        return Kernel(
            func.name,
            scheduled.func,
            plain,
            str(scheduled.trace),
            scheduled.rule,
            sizes,
            tuple(Var(name) for name in sizes),
            plain.params[len(func.params) :],
            {inputs.index(n): layout for n, layout in scheduled.func.layouts},
            source.in_place,
            source.flops,
            param_bytes(source.func),
            scheduled.note,
            {
                p.name: (p.shape, source.rooms[p.name])
                for p in func.params
                if p.name in source.rooms
            },
        )

    def _overridden(self, scheduled: ScheduledFunc) -> ScheduledFunc:
        """The function as its file in the folder `overrides` has it, if there is one."""
        path = (self.overrides or Path()) / f"{scheduled.func.name}{LOOPS}"
        if self.overrides is None or not path.is_file():
            return scheduled
        return ScheduledFunc(read_override(path, scheduled.func), Trace(), "override")

    def check_overrides(self) -> None:
        """Refuse files that no kernel of the model has taken: a name may be misspelt."""
        if self.overrides is None:
            return
        unused = sorted({p.stem for p in self.overrides.glob(f"*{LOOPS}")} - self._names)
        if unused or not self.overrides.is_dir():
            what = "".join(
                f"holds {name}{LOOPS}, but no kernel has that name" for name in unused[:1]
            )
            raise ConfigError(
                "override.unused",
                f"{self.overrides} {what or 'is not a folder'}",
                help=f"the kernels are {', '.join(sorted(self._names))}",
            )

    def _name(self, title: str) -> str:
        base = name = title[:60]
        while name in self._names:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}.{self._counts[base]}"
        self._names.add(name)
        return name


def _widened(func: Func, rooms: Mapping[str, Shape]) -> Func:
    """`func` with parameters laid out by their rooms; loops and indices stay as they are."""
    params = tuple(replace(p, shape=rooms.get(p.name, p.shape)) for p in func.params)
    return replace(func, params=params)


def _formula(node: Node, types: Sequence[Type | None]) -> tuple[Any, ...]:
    """What a node computes, whatever its values are called in the model: equals compare equal.

    Layers of a model repeat, so this is asked far more often than a kernel is made.
    """
    outer = (node.op, node.attrs, tuple(types), node.types)
    if not node.regions:
        return outer
    group = node.regions[0]
    constants = tuple((c.name, c.type, c.data.tobytes()) for c in group.constants)
    steps = tuple((n.op, n.inputs, n.outputs, n.types, n.attrs) for n in group.nodes)
    return (*outer, group.name, group.inputs, constants, steps, group.outputs)


def read_override(path: Path, original: Func) -> Func:
    """The function in a file, checked: it must be called exactly as `original` is."""
    try:
        func = parse_func(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("override.unreadable", f"cannot read {path}: {error}") from error
    func = replace(func, loc=Loc(str(path)))
    verify_func(func)
    for part in ("name", "params", "outputs", "layouts"):
        if getattr(func, part) != getattr(original, part):
            header = print_func(replace(original, body=Seq(()))).partition("{")[0].strip()
            raise ConfigError(
                "override.signature",
                f"the {part} of function {func.name} must stay as they are",
                loc=func.loc,
                help=f"begin it with: {header}",
            )
    return func


def _sizes(func: Func) -> tuple[str, ...]:
    """The symbolic sizes a plain function mentions: free variables that no loop binds."""
    bound = {loop.name for loop in loops(func.body)}
    used: set[str] = set()
    for e in expressions(func.body):
        used |= free_vars(e)
    for p in func.params:
        for d in p.shape:
            used |= free_vars(d)
    return tuple(sorted(used - bound))


def in_place_inputs(program: Program) -> tuple[int, ...]:
    """Inputs whose memory the (single) output may take: read only at the element being written."""
    if len(program.outputs) != 1:
        return ()
    identity = {program.outputs[0]}
    blocked: set[str] = set()
    for stage in reversed(program.stages):
        for load in loads(stage.body):
            plain = (
                stage.name in identity - blocked
                and not stage.is_reduction
                and load.indices == stage.indices
                and load.mask is None
            )
            (identity if plain else blocked).add(load.buffer)
    output = next(s for s in program.stages if s.name == program.outputs[0])
    return tuple(
        i
        for i, t in enumerate(program.inputs)
        if t.name in identity - blocked and t.shape == output.shape and t.dtype == output.dtype
    )


def group_flops(group: Graph) -> Expr:
    """The arithmetic operations of all operators in a group."""
    total: Expr = const(0)
    for n in group.nodes:
        ins = [group.types[i] if i else None for i in n.inputs]
        total = total + get_op(n.op).cost(n.attrs, ins, n.types)
    return simplify(total)
