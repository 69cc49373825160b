"""NonMaxSuppression: boxes with the greatest scores that do not overlap."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Expr, as_int, const, minimum
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, I64, DType
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.data_dependent import require_true
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import traced
from tilewright.ops.image.non_max_suppression import NonMaxSuppressionAttrs
from tilewright.ops.tensor.argsort import ArgsortAttrs


def non_max_suppression(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Batch, class and box of all that are picked, those of a class by descending score."""
    boxes, scores = n.required(0), n.required(1)
    batches, classes, count = c.shape(n, scores, 3)
    rows = add_reshape(c, n, scores, (simplify(batches * classes), count, const(1)))
    order = c.add(n, "argsort_rows", rows, attrs=ArgsortAttrs(descending=True))
    limits = (_number(c, n, 2, I64), _number(c, n, 3, F32), _number(c, n, 4, F32))
    if n.has_input(3):
        iou = traced(c, n, limits[1])
        in_range = iou.apply("less_or_equal", 1).apply("and", iou.apply("greater_or_equal", 0))
        require_true(c, n, in_range, "iou_threshold is outside 0 .. 1")
    format = n.int_attr("center_point_box", 0)
    if format not in (0, 1):
        raise n.invalid(f"center_point_box is {format}", "0 or 1")
    attrs = NonMaxSuppressionAttrs(_most(c, n, count), bool(format), n.has_input(4))
    names = ("picked", "count")
    picked, number = c.g.add_many(
        "non_max_suppression", boxes, scores, order, *limits, attrs=attrs, names=names
    )
    size = c.bind_dim(n, number, c.type(picked).shape[0])
    return (add_slice(c, picked, {0: (const(0), size, 1)}, n.outputs[0]),)


def _most(c: OnnxContext, n: OnnxNode, count: Expr) -> Expr:
    """The most boxes of a class that there can be."""
    if not n.has_input(2):
        return const(0)
    known = c.g.symbolic_value(n.input(2))
    wanted = None if known is None else as_int(known.reshape(-1)[0])
    return count if wanted is None else simplify(minimum(count, const(max(wanted, 0))))


def _number(c: OnnxContext, n: OnnxNode, index: int, dtype: DType) -> str:
    """A limit that may be left out, 0 then, as one element."""
    if not n.has_input(index):
        return c.constant(np.zeros(1), dtype)
    return add_reshape(c, n, c.cast(n, n.input(index), dtype), (const(1),))


CONVERTERS: dict[str, Converter] = {"NonMaxSuppression": non_max_suppression}
