"""Fold a zero `pad` before a convolution into the convolution's own padding.

    %1 = pad(%x) {before=[0, 0, 0, 0], after=[0, 0, 1, 1]}
    %2 = conv(%1, %w) {pads=[0, 0, 0, 0]}      →      %2 = conv(%x, %w) {pads=[0, 0, 1, 1]}

This saves one read and one write of the image.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.conv.sliding_window import spatial
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def fold_pad_into_conv(graph: Graph, context: PassContext) -> Graph:
    """Let convolutions pad their images themselves."""
    return rewrite_graph(graph, _rule, of=("conv",))


def _rule(g: Rewriter, n: Node) -> str | None:
    pad = g.producer(n.inputs[0]) if n.op == "conv" else None
    attrs = n.attrs
    if pad is None or not isinstance(pad.attrs, PadAttrs) or not isinstance(attrs, ConvAttrs):
        return None
    added = _around(pad.attrs, attrs.layout) if _adds_zeros(g, pad, pad.attrs) else None
    if added is None:
        return None
    pads = tuple(own + more for own, more in zip(attrs.pads, added, strict=True))
    return g.add(n.op, pad.inputs[0], *n.inputs[1:], attrs=replace(attrs, pads=pads))


def _adds_zeros(g: Rewriter, pad: Node, attrs: PadAttrs) -> bool:
    value = g.constant_data(pad.inputs[1]) if len(pad.inputs) > 1 else np.array(attrs.value)
    return attrs.mode == "constant" and value is not None and not value.any()


def _around(attrs: PadAttrs, layout: str) -> tuple[int, ...] | None:
    """What is added to the axes of an image, before all and after; `None` if that is not all."""
    added: list[int] = []
    for side in (attrs.before, attrs.after):
        changed = [n for n in side if as_int(n) != 0]
        image = [as_int(n) for n in spatial(layout, side)]
        known = [n for n in image if n is not None and n >= 0]
        if len(known) < len(image) or len(changed) > sum(map(bool, known)):
            return None
        added += known
    return tuple(added)
