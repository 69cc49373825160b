from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.frontends.onnx.convert.ml.tree_nodes import MODES, TreeNodes

ANSWERS = {
    "BRANCH_LEQ": np.less_equal,
    "BRANCH_LT": np.less,
    "BRANCH_GTE": np.greater_equal,
    "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal,
    "BRANCH_NEQ": np.not_equal,
}


def _walk(f: TreeNodes, k: int, x: float) -> int:
    while f.yes[k] != k:
        answer = f.missing[k] if np.isnan(x) else np.float32(x) <= np.float32(f.value[k])
        k = f.yes[k] if answer else f.no[k]
    return k


@for_each("mode", MODES)
@for_each("value", [0.0, 1.5, -np.inf])
def test_every_question(mode: str, value: float) -> None:
    f = TreeNodes(np.dtype("f4"))
    root, yes, no = f.new(), f.new(), f.new()
    f.ask(root, mode, 0, value, yes, no, False)
    near = np.nextafter(np.float32(value), np.float32([-np.inf, np.inf]))
    for x in (value, *near, -9.0, 9.0, np.inf, -np.inf):
        assert _walk(f, root, x) == (yes if ANSWERS[mode](np.float32(x), value) else no), x
    assert _walk(f, root, np.nan) == (yes if mode == "BRANCH_NEQ" else no)
    f.ask(root, mode, 0, value, yes, no, True)
    assert _walk(f, root, np.nan) == yes


def test_members() -> None:
    f = TreeNodes(np.dtype("f4"))
    root, yes, no = f.new(), f.new(), f.new()
    f.member(root, 0, [1.0, 4.0, 2.5], yes, no, True)
    for x in (0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0):
        assert _walk(f, root, x) == (yes if x in (1.0, 4.0, 2.5) else no)
    assert _walk(f, root, np.nan) == yes


def test_depth_and_order() -> None:
    f = TreeNodes(np.dtype("f4"))
    root, inner, a, b = (f.new() for _ in range(4))
    assert f.depth([root]) == 0
    f.at_most(root, 0, 1.0, inner, a, False)
    f.at_most(inner, 0, 0.0, a, b, False)
    assert f.depth([root]) == 2
    np.testing.assert_array_equal(f.leaves_first(), [2, 3, 0, 1])
    f.at_most(inner, 0, 0.0, root, b, False)
    assert f.depth([root]) is None
