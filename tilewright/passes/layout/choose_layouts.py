"""Layout assignment: channels last or channels first for each convolution and pooling.

    y = conv(x, w)   →   y = transpose(conv[channels_last](transpose(x), w))

With channels last, windows are matrix products over contiguous channels, and their consumers
vectorize along them; the transposes cancel in `sink_transposes`. Where they do not, as around a
single layer, they may cost more than the layout gains. What cancels depends on the neighbours'
layouts, so that all are chosen together, as a minimum cut: a node pays for its own side
(`layout_costs`), a value for a transpose if its producer and a reader differ. Elementwise operators
and others that transposes pass through are free on either side. Inputs, outputs and all other nodes
are channels first; a transpose of the model itself, from one layout to the other, takes the side on
which it cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import TensorType
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import WindowAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.layout.layout_costs import transpose_cost, window_cost
from tilewright.passes.layout.min_cut import Cut
from tilewright.passes.layout.sink_transposes import sinks_through
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target

# The sides of what has no choice.
FIRST, LAST = "channels_first", "channels_last"
ZERO, ONE = const(0), const(1)


def choose_layouts(graph: Graph, context: PassContext) -> Graph:
    """Put the channels of convolutions and pooling last where that pays."""
    if not any(_has_channels_first(n) for n in graph.nodes) or not _gains(graph, context):
        return graph
    layouts = _Layouts(graph, context.target)
    return rewrite_graph(graph, layouts.rule)


def _gains(graph: Graph, context: PassContext) -> bool:
    """Whether channels last are worth a choice: on a GPU only where tensor cores read them."""
    if not isinstance(context.target, GpuTarget) or context.precision != "f32":
        return True
    convolutions = (n for n in graph.nodes if isinstance(n.attrs, ConvAttrs))
    return any(graph.tensor_type(n.inputs[0]).dtype.bits <= 16 for n in convolutions)


def _has_channels_first(n: Node) -> bool:
    return isinstance(n.attrs, WindowAttrs) and n.attrs.layout == "channels_first"


class _Layouts:
    """The layouts of a graph: `last` names the nodes, and sides, that have the channels last."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.windows = {n.name: n for n in graph.nodes if _has_channels_first(n)}
        self.free = {n.name for n in graph.nodes if sinks_through(n)} | self.windows.keys()
        self.last = self._cut()
        self.moved: dict[tuple[str, tuple[int, ...]], str] = {}

    def _cut(self) -> set[Hashable]:
        cut = Cut()
        cut.fix(LAST, left=True)
        cut.fix(FIRST, left=False)
        for name, n in self.windows.items():
            cost = window_cost(self.graph, n, self.target)
            cut.choice(name, left=cost.channels_last, right=cost.channels_first)
        ranks = {n.type.rank for n in self.windows.values()}
        for value, t in self.graph.types.items():
            if isinstance(t, TensorType) and t.rank in ranks and not self._is_constant(value):
                side, readers = self._producer_side(value), self._reader_sides(value)
                if readers - {side}:
                    cut.differ(side, sorted(readers - {side}), transpose_cost(t, self.target))
        return cut.solve()

    def _is_constant(self, value: str) -> bool:
        return value in self.graph.constant_by_name

    def _producer_side(self, value: str) -> str:
        n = self.graph.producer.get(value)
        if n is None:
            return FIRST
        return LAST if _is_transpose(n, _to_first) else n.name if n.name in self.free else FIRST

    def _reader_sides(self, value: str) -> set[str]:
        sides = {FIRST} if value in self.graph.output_set else set()
        for n in self.graph.consumers.get(value, ()):
            is_weight = isinstance(n.attrs, WindowAttrs) and value != n.inputs[0]
            if n.name in self.free and not is_weight:
                sides.add(n.name)
            else:
                sides.add(LAST if _is_transpose(n, _to_last) else FIRST)
        return sides

    def rule(self, g: Rewriter, n: Node) -> tuple[str, ...] | None:
        """A node in the layout that was chosen."""
        if isinstance(n.attrs, ConcatAttrs) and n.name in self.last:
            return self._joined(g, n, n.attrs)
        if not _has_channels_first(n):
            return None
        attrs, x = n.attrs, n.inputs[0]
        assert isinstance(attrs, WindowAttrs)
        if self._producer_side(self.windows[n.name].inputs[0]) not in self.last and _picks_pixels(
            g, n
        ):
            x, attrs = self._picked(g, x, attrs), replace(attrs, strides=(1,) * attrs.rank)
        if n.name in self.last:
            rank = attrs.rank + 2
            x = self._transposed(g, x)
            attrs = replace(attrs, layout="channels_last")
            outputs = g.add_many(n.op, x, *n.inputs[1:], attrs=attrs)
            return tuple(
                g.add("transpose", o, attrs=TransposeAttrs(_to_first(rank))) for o in outputs
            )
        return None if attrs is n.attrs else g.add_many(n.op, x, *n.inputs[1:], attrs=attrs)

    def _joined(self, g: Rewriter, n: Node, attrs: ConcatAttrs) -> tuple[str, ...]:
        """A concatenation with the channels last, also of parts that have them first."""
        rank = n.type.rank
        axis = _to_last(rank).index(attrs.axis % rank)
        parts = [self._transposed(g, x) for x in n.inputs]
        joined = g.add("concat", *parts, attrs=ConcatAttrs(axis))
        return (g.add("transpose", joined, attrs=TransposeAttrs(_to_first(rank))),)

    def _picked(self, g: Rewriter, x: str, attrs: WindowAttrs) -> str:
        """The pixels that windows of one pixel step on."""
        if (x, attrs.strides) not in self.moved:
            shape = g.type(x).shape
            steps = SliceAttrs((ZERO,) * len(shape), shape, (1, 1, *attrs.strides))
            self.moved[x, attrs.strides] = g.add("slice", x, attrs=steps)
        return self.moved[x, attrs.strides]

    def _transposed(self, g: Rewriter, x: str) -> str:
        if (x, ()) not in self.moved:
            perm = _to_last(g.type(x).rank)
            self.moved[x, ()] = g.add("transpose", x, attrs=TransposeAttrs(perm))
        return self.moved[x, ()]


def _picks_pixels(g: Rewriter, n: Node) -> bool:
    """Whether windows of one pixel step over others, which then need no rearranging."""
    attrs = n.attrs
    if type(attrs) is not ConvAttrs or max(attrs.strides) == 1 or any(attrs.pads):
        return False
    return all(d is ONE for d in g.type(n.inputs[1]).shape[2:])


def _is_transpose(n: Node, perm: Callable[[int], tuple[int, ...]]) -> bool:
    return isinstance(n.attrs, TransposeAttrs) and n.attrs.perm == perm(n.type.rank)


def _to_last(rank: int) -> tuple[int, ...]:
    return (0, *range(2, rank), 1)


def _to_first(rank: int) -> tuple[int, ...]:
    return (0, rank - 1, *range(1, rank - 1))
