"""A node of the fused graph → the loops of its kernel, not yet scheduled.

A fused group becomes one tensor program, whose dimensions are collapsed where that is possible; an
operator without a tensor expression has loops of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tilewright.arith.expr import Expr
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.dims import map_exprs
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.loop.annotations import FINITE_WEIGHTS
from tilewright.ir.loop.nodes import Annotations, Func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import blocks, loops
from tilewright.ir.types import Shape, Type
from tilewright.lower.collapse_dims import collapse_strided
from tilewright.lower.dim_params import DimParams
from tilewright.lower.inplace import inplace_inputs
from tilewright.lower.kernel_cost import group_flops, param_bytes
from tilewright.lower.loop_nests import program_func
from tilewright.lower.tensor_program import group_program
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.registry import get_op

StridedParams = tuple[tuple[int, Shape], ...]
"""Parameters that are strided views, by number, with the shape of their parent tensor."""


@dataclass(frozen=True)
class LoweredKernel:
    """The loops of a kernel before scheduling, and what is known of them.

    `parent_shapes` has the parameters that are strided views, by name: the shape by which each is
    laid out, of as many dimensions as the parameter. `dims` says what the kernel's own dimension
    parameters are in terms of the model's dimensions.
    """

    func: Func
    inplace: tuple[int, ...]
    flops: Expr
    parent_shapes: Mapping[str, Shape] = field(default_factory=dict)
    dims: Mapping[str, Expr] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The loops as text: kernels of equal text are equal."""
        return print_func(self.func)

    @cached_property
    def param_bytes(self) -> tuple[Expr, ...]:
        """For each parameter, the bytes read or written."""
        return param_bytes(self.func)


def lower_kernel(
    node: Node,
    types: Sequence[Type | None],
    strided: StridedParams = (),
    annotations: Annotations = (),
) -> LoweredKernel:
    """The loops of a node whose inputs have these types, with further annotations."""
    assert node.regions or not strided, f"{node.op} does not take strided views"
    dims = DimParams()
    if node.regions:
        group = dims.named_group(node.regions[0])
        lowered = lower_group(group, map_exprs(strided, dims.known))
    else:
        lowered = lower_loops(node, types)
    func = replace(lowered.func, annotations=(*lowered.func.annotations, *annotations))
    return replace(lowered, func=func, dims=dims.given)


def lower_group(group: Graph, strided: StridedParams = ()) -> LoweredKernel:
    """The loops of a fused group."""
    program = group_program(group)
    params = (*(t.name for t in program.inputs), *program.outputs)
    program, parents = collapse_strided(program, {params[i]: shape for i, shape in strided})
    inplace = inplace_inputs(program)
    func = program_func(program)
    if any(isinstance(n.attrs, ConvAttrs) and n.attrs.skips_padding for n in group.nodes):
        func = replace(func, annotations=(*func.annotations, FINITE_WEIGHTS.note()))
    return LoweredKernel(func, inplace, group_flops(group), parents)


def lower_loops(node: Node, types: Sequence[Type | None]) -> LoweredKernel:
    """The loops that an operator without a tensor expression has in its row."""
    row = get_op(node.op)
    assert row.loops is not None, f"{node.op} is neither fused nor given as loops"
    func: Func = row.loops(node.attrs, types, node.types)
    sizes = {name for p in func.params for d in p.shape for name in free_vars(d)}
    bound = {it.name for b in blocks(func.body) for it in b.iters}
    bound |= {loop.name for loop in loops(func.body)}
    assert not sizes & bound, f"{node.op} calls a loop like a size: {sizes & bound}"
    flops = simplify(row.cost(node.attrs, types, node.types))
    return LoweredKernel(func, (), flops)
