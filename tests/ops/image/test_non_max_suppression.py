"""Boxes that do not overlap, against a plain computation: interpreted and native."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.ops.run_with_dims import run_op, type_of
from tilewright.arith.expr import Var, const
from tilewright.core.errors import TypeCheckError
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.image.non_max_suppression import NonMaxSuppressionAttrs


def corners(box: np.ndarray, centered: bool) -> tuple[np.ndarray, np.ndarray]:
    if centered:
        return box[:2] - box[2:] / 2, box[:2] + box[2:] / 2
    return np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])


def overlap(a: np.ndarray, b: np.ndarray, centered: bool) -> float:
    (low, high), (other_low, other_high) = corners(a, centered), corners(b, centered)
    shared = np.prod(np.maximum(np.minimum(high, other_high) - np.maximum(low, other_low), 0))
    return shared / (np.prod(high - low) + np.prod(other_high - other_low) - shared)


def picked(
    boxes: np.ndarray, scores: np.ndarray, most: int, share: float, least: float, centered: bool
) -> list[list[int]]:
    found = []
    for b, c in np.ndindex(scores.shape[:2]):
        taken: list[int] = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            free = all(overlap(boxes[b, i], boxes[b, j], centered) <= share for j in taken)
            if len(taken) < most and scores[b, c, i] > least and free:
                taken.append(int(i))
        found += [[b, c, i] for i in taken]
    return found


def inputs(count: int, most: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    boxes = rng.random((2, count, 4)).astype(np.float32)
    scores = rng.random((2, 3, count)).astype(np.float32)
    order = np.argsort(-scores, kind="stable").reshape(6, count)
    numbers = (np.array([v], np.float32) for v in (0.3, 0.2))
    return [boxes, scores, order, np.array([most]), *numbers]


@for_each("centered", [True, False])
@for_each(("count", "most"), [(9, 100), (9, 2), (1, 1), (5, 0), (0, 3)])
def test_against_a_plain_computation(count: int, most: int, centered: bool) -> None:
    given = inputs(count, most)
    rows, number = run_op(
        "non_max_suppression",
        *given,
        attrs=NonMaxSuppressionAttrs(const(count), centered, has_least=True),
    )
    wanted = picked(given[0], given[1], most, 0.3, 0.2, centered)
    assert rows[: number[0]].tolist() == wanted


def test_native() -> None:
    given = inputs(37, 20)
    g = GraphBuilder("g")
    dims = [("B", "N", 4), ("B", "C", "N"), (6, "N"), None, None, None]
    names = [
        g.input(f"a{i}", type_of(x, d)) for i, (x, d) in enumerate(zip(given, dims, strict=True))
    ]
    _, count = g.add_many("non_max_suppression", *names, attrs=NonMaxSuppressionAttrs(Var("N")))
    model = check_native(g.graph(count), dict(zip(names, given, strict=True)))
    model.close()


def test_what_are_no_boxes() -> None:
    given = inputs(3, 1)
    given[0] = given[0][..., :3]
    with pytest.raises(TypeCheckError, match="not boxes"):
        run_op("non_max_suppression", *given, attrs=NonMaxSuppressionAttrs(const(3)))
