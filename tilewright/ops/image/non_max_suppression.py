"""Non-maximum suppression: boxes by descending score, without those that overlap an earlier one.

    %picked: i64[b*c*k, 3], %count: i64[1] =
        non_max_suppression(%boxes, %scores, %order, %most, %iou, %least) {limit=k}

`boxes: f32[b, n, 4]`, `scores: f32[b, c, n]`, and `order: i64[b*c, n]` says which box has the
greatest score of its class, which the next. At most `most` boxes of a class are picked, with scores
above `least`; boxes overlap if their intersection over union is above `iou`. A box is described by
two opposite corners `(y, x, y, x)`, or by its centre and size `(x, y, width, height)`. Rows of the
result are the numbers of batch, class and box; beyond the last row anything may stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, const, maximum, minimum, unary
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BOOL, F32, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import same_shape, same_size

# Which boxes overlap with one that is picked, and how many of a class are picked.
GONE, TAKEN = "gone", "taken"


@node
class NonMaxSuppressionAttrs(Attrs):
    """The most boxes of a class that are planned for, how boxes are given, if there is a least."""

    limit: Expr
    centered: bool = False
    has_least: bool = False


def _type(
    attrs: NonMaxSuppressionAttrs, ins: Sequence[TensorType]
) -> tuple[TensorType, TensorType]:
    boxes, scores = ins[0], ins[1]
    named = "non_max_suppression"
    are_boxes = boxes.rank == 3 and same_size(named, boxes.shape[2], const(4)) is not None
    if not are_boxes or scores.rank != 3:
        raise fail("non_max_suppression", f"{boxes} and {scores} are not boxes and scores by class")
    if any(t.dtype != F32 for t in (boxes, scores)):
        raise fail("non_max_suppression", f"{boxes} and {scores} are not both f32")
    alike = (boxes.shape[0], boxes.shape[1]), (scores.shape[0], scores.shape[2])
    if not same_shape("non_max_suppression", *alike):
        raise fail("non_max_suppression", f"{boxes} and {scores} are not of the same boxes")
    rows = simplify(scores.shape[0] * scores.shape[1] * attrs.limit)
    return tensor(I64, rows, 3), tensor(I64, 1)


def _edges(b: Expr, box: Expr, axis: int, centered: bool) -> tuple[Expr, Expr]:
    """The lower and the upper end of a box along an axis, 0 or 1."""
    first, second = (Load("x0", (b, box, const(axis + i)), F32) for i in (0, 2))
    if centered:
        half = second / const(2, F32)
        return first - half, first + half
    return minimum(first, second), maximum(first, second)


def _overlaps(b: Expr, one: Expr, other: Expr, centered: bool) -> Expr:
    """Whether the intersection over union of two boxes is above the threshold."""
    zero = const(0, F32)
    intersection: Expr = const(1, F32)
    areas: list[Expr] = [const(1, F32), const(1, F32)]
    touch: Expr = const(True, BOOL)
    for axis in (0, 1):
        ends = [_edges(b, box, axis, centered) for box in (one, other)]
        low, high = maximum(ends[0][0], ends[1][0]), minimum(ends[0][1], ends[1][1])
        touch = touch & (low < high)
        intersection = intersection * (high - low)
        areas = [area * (top - bottom) for area, (bottom, top) in zip(areas, ends, strict=True)]
    union = areas[0] + areas[1] - intersection
    whole = (zero < areas[0]) & (zero < areas[1]) & (zero < union)
    return touch & whole & (Load("x4", (const(0),), F32) < intersection / union)


def _class(attrs: NonMaxSuppressionAttrs, scores: TensorType, b: Expr, c: Expr) -> Stmt:
    """Pick boxes of one class, the greatest score first."""
    zero, n = const(0), scores.shape[2]
    box = Load("x2", (b * scores.shape[1] + c, Var("at.i")), I64)
    taken, count = Load(TAKEN, (zero,), I64), Load("y1", (zero,), I64)
    wanted = unary("not", Load(GONE, (box,), BOOL)) & (taken < Load("x3", (zero,), I64))
    if attrs.has_least:
        wanted = wanted & (Load("x5", (zero,), F32) < Load("x1", (b, c, box), F32))
    k = Var("at.k")
    marks = If(_overlaps(b, box, k, attrs.centered), Store(GONE, (k,), const(True, BOOL)))
    pick = Seq(
        (
            *(Store("y0", (count, const(j)), v) for j, v in enumerate((b, c, box))),
            Store("y1", (zero,), count + 1),
            Store(TAKEN, (zero,), taken + 1),
            nest(("at.k",), (n,), marks),
        )
    )
    return Seq(
        (
            nest(("at.g",), (n,), Store(GONE, (Var("at.g"),), const(False, BOOL))),
            Store(TAKEN, (zero,), zero),
            nest(("at.i",), (n,), If(wanted, pick)),
        )
    )


def _suppress(
    attrs: NonMaxSuppressionAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    scores, params = ins[1], parameters(ins, outs)
    local = {
        GONE: Buffer(GONE, BOOL, (scores.shape[2],)),
        TAKEN: Buffer(TAKEN, I64, (const(1),)),
    }

    def body() -> Stmt:
        each = _class(attrs, scores, Var("at.b"), Var("at.c"))
        start = Store("y1", (const(0),), const(0))
        return Seq((start, nest(("at.b", "at.c"), scores.shape[:2], each)))

    block: Stmt = spatial_block("non_max_suppression", (), body, {**params, **local})
    for buffer in local.values():
        block = Alloc(buffer, block)
    return Func("non_max_suppression", tuple(params.values()), ("y0", "y1"), block)


OPS = (
    Op(
        "non_max_suppression",
        _type,
        "opaque",
        NonMaxSuppressionAttrs,
        loops=_suppress,
        flops=lambda _, ins, outs: ins[1].elements * const(20),
        doc="Boxes with the greatest scores that do not overlap with each other, by class.",
    ),
)
