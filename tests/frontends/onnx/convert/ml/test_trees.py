"""Ensembles of trees, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.for_each import for_each
from tests.frontends.onnx.convert.ml.ml_node import check_ml, check_texts, imported_ml, run_ml
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.convert.ml.tree_nodes import MODES

RNG = np.random.default_rng(20)
X = RNG.standard_normal((6, 4)).astype("f4")


def _trees(kind: str, ids: list[int], mode: str = "BRANCH_LEQ", missing: int = 0, **kw: Any) -> Any:
    """Three trees of three questions each; a leaf has a weight for each of `ids`."""
    inner = list(range(3))
    count = 3 * 7
    nodes = [k % 7 for k in range(count)]
    leaves = [k for k in range(count) if nodes[k] not in inner]
    weights = RNG.standard_normal(len(leaves) * len(ids)) * 0.3
    return {
        "nodes_treeids": [k // 7 for k in range(count)],
        "nodes_nodeids": nodes,
        "nodes_featureids": [int(RNG.integers(4)) if k in inner else 0 for k in nodes],
        "nodes_modes": [mode if k in inner else "LEAF" for k in nodes],
        "nodes_values": [float(RNG.choice(X.reshape(-1))) for _ in nodes],
        "nodes_truenodeids": [2 * k + 1 if k in inner else 0 for k in nodes],
        "nodes_falsenodeids": [2 * k + 2 if k in inner else 0 for k in nodes],
        "nodes_missing_value_tracks_true": [missing if k in inner else 0 for k in nodes],
        f"{kind}_treeids": [k // 7 for k in leaves for _ in ids],
        f"{kind}_nodeids": [nodes[k] for k in leaves for _ in ids],
        f"{kind}_ids": ids * len(leaves),
        f"{kind}_weights": (np.abs(weights) if kw.get("positive") else weights).tolist(),
    }


@for_each("mode", MODES)
@for_each("missing", [0, 1])
def test_questions(mode: str, missing: int) -> None:
    x = X.copy()
    x[0], x[1, 1] = np.nan, np.nan
    check_ml("TreeEnsembleRegressor", [x], n_targets=2, **_trees("target", [0, 1], mode, missing))


@for_each("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_joins(how: str) -> None:
    options = {"n_targets": 2, "aggregate_function": how, "base_values": [0.5, 1.0]}
    check_ml("TreeEnsembleRegressor", [X], **options, **_trees("target", [0, 1]))


@for_each("name", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@for_each("positive", [False, True])
def test_classes(name: str, positive: bool) -> None:
    options = {"outputs": 2, "post_transform": name}
    trees = _trees("class", [0, 1, 2], positive=positive)
    check_ml("TreeEnsembleClassifier", [X], classlabels_int64s=[3, 4, 5], **options, **trees)
    if name in ("NONE", "LOGISTIC"):
        trees = _trees("class", [0], positive=positive)
        check_ml("TreeEnsembleClassifier", [X], classlabels_int64s=[3, 4], **options, **trees)


def test_either_class_may_have_the_score() -> None:
    trees = _trees("class", [0])
    options = {"outputs": 2, "classlabels_int64s": [3, 4], "base_values": [0.25]}
    first = run_ml("TreeEnsembleClassifier", [X], **options, **trees)
    trees["class_ids"] = [1] * len(trees["class_ids"])
    for a, b in zip(first, run_ml("TreeEnsembleClassifier", [X], **options, **trees), strict=True):
        np.testing.assert_array_equal(a, b)


def test_native() -> None:
    trees = _trees("target", [0, 1], missing=1)
    options = {"n_targets": 2, "dims": {0: ("N", 4)}}
    graph = imported_ml("TreeEnsembleRegressor", [X], **options, **trees)
    for rows in (0, 6):
        check_native(graph, {"x0": X[:rows]}).close()


def test_wrong_trees() -> None:
    with pytest.raises(FrontendError, match="asks 'BRANCH_NEAR'"):
        run_ml("TreeEnsembleRegressor", [X], n_targets=1, **_trees("target", [0], "BRANCH_NEAR"))
    with pytest.raises(FrontendError, match="aggregate_function"):
        run_ml("TreeEnsembleRegressor", [X], aggregate_function="MODE", **_trees("target", [0]))
    trees = _trees("target", [0])
    with pytest.raises(FrontendError, match="features are too few"):
        run_ml("TreeEnsembleRegressor", [X[:, :1]], **{**trees, "nodes_featureids": [3] * 21})
    with pytest.raises(FrontendError, match="without an end"):
        run_ml("TreeEnsembleRegressor", [X], **{**trees, "nodes_truenodeids": [0] * 21})


@for_each(
    ("changed", "message"),
    [
        ({"nodes_featureids": [-1] * 21}, "asks for feature -1"),
        ({"nodes_featureids": [0]}, "do not fit together"),
        ({"nodes_values": [0.5]}, "do not fit together"),
        ({"nodes_nodeids": [0, 1]}, "do not fit together"),
        ({"nodes_falsenodeids": [40] * 21}, "do not fit together"),
        ({"target_nodeids": [40] * 12}, "do not fit together"),
        ({"target_ids": [3] * 12}, "do not fit together"),
        ({"target_ids": [-1] * 12}, "target_ids has -1"),
        ({"target_weights": [0.5] * 5}, "do not fit together"),
    ],
)
def test_lists_that_do_not_fit_together(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        run_ml("TreeEnsembleRegressor", [X], **{**_trees("target", [0]), **changed})


@for_each("targets", [2**62, 2**40])
def test_more_targets_than_memory_holds(targets: int) -> None:
    with pytest.raises(UnsupportedError, match=f"a table of 21 x {targets} numbers"):
        run_ml("TreeEnsembleRegressor", [X], n_targets=targets, **_trees("target", [0]))
    with pytest.raises(FrontendError, match=f"a table of 21 x {-targets} numbers"):
        run_ml("TreeEnsembleRegressor", [X], n_targets=-targets, **_trees("target", [0]))


def test_labels_that_are_texts() -> None:
    for labels, targets in ((["a", "b", "c"], [0, 1, 2]), (["a", "b"], [0])):
        options = {"classlabels_strings": labels, "outputs": 2, **_trees("class", targets)}
        check_texts("TreeEnsembleClassifier", [X], **options)
