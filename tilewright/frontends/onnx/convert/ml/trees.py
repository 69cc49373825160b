"""Ensembles of decision trees: TreeEnsemble, and its older forms for classes and for targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import BOOL, F32, I64
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.ml.scores import (
    POST_TRANSFORMS,
    beside,
    chosen,
    column,
    either,
    labels_of,
    post_transform,
    transformed,
)
from tilewright.frontends.onnx.convert.ml.tree_nodes import MODES, TreeNodes
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.classical.tree_ensemble import TreesAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs

DOMAIN = "ai.onnx.ml"
# What the older operators name a node by: its tree and its number there.
NodeId = tuple[int, int]


class _Join(NamedTuple):
    """How leaves join: over all trees, within one, and what one that says nothing counts as."""

    reduction: str
    combine: np.ufunc
    absent: float


_JOINS = {
    "AVERAGE": _Join("reduce_mean", np.add, 0.0),
    "SUM": _Join("reduce_sum", np.add, 0.0),
    "MIN": _Join("reduce_min", np.minimum, np.inf),
    "MAX": _Join("reduce_max", np.maximum, -np.inf),
}


def _joined(
    c: OnnxContext,
    x: NodeValue,
    forest: TreeNodes,
    roots: Sequence[int],
    weights: np.ndarray,
    how: str,
) -> NodeValue:
    """The weights of the leaves that rows lead to, joined; `weights` has one row a node."""
    n = x.g.n
    if not roots:
        raise n.invalid("it has no trees")
    depth = forest.depth(roots)
    _, size = c.shape(n, x.name, 2)
    if depth is None:
        raise n.invalid("a tree has a path without an end")
    if min(forest.feature) < 0:
        raise n.invalid(f"a node asks for feature {min(forest.feature)}")
    enough = const(max(forest.feature)) < size
    if not c.g.add_check(enough, f"{n.op_type}: {size} features are too few", n.loc):
        raise n.invalid(f"{size} features are too few")
    numbers = forest.leaves_first()
    order = np.argsort(numbers)

    def table(values: np.ndarray) -> str:
        return c.constant(values, I64)

    tables = [
        table(numbers[list(roots)]),
        table(np.array(forest.feature)[order]),
        c.constant(np.array(forest.value)[order], x.dtype),
        table(numbers[forest.yes][order]),
        table(numbers[forest.no][order]),
    ]
    if any(forest.missing):
        tables.append(c.constant(np.array(forest.missing)[order], BOOL))
    leaves = c.add(n, "decision_trees", x.name, *tables, attrs=TreesAttrs(depth))
    count = int(np.sum(np.array(forest.yes) == np.arange(len(forest.yes))))
    kept = c.constant(weights[order][:count], x.dtype)
    found = traced(c, n, c.add(n, "gather", kept, leaves, attrs=GatherAttrs(0, "clip")))
    return found.apply(_JOINS[how].reduction, attrs=ReduceAttrs((1,), keepdims=False))


@contextmanager
def _lists_of(n: OnnxNode) -> Iterator[None]:
    """While lists are read that belong together: where they do not, the model is wrong."""
    try:
        yield
    except (IndexError, KeyError, ValueError) as error:
        raise n.invalid(f"its lists of nodes and leaves do not fit together: {error}") from error


def _places(n: OnnxNode, name: str) -> tuple[int, ...]:
    """Places in another list."""
    found = tuple(n.ints_attr(name))
    if min(found, default=0) < 0:
        raise n.invalid(f"{name} has {min(found)}", "places count from 0")
    return found


def _named(n: OnnxNode, name: str, names: Sequence[str], default: int) -> str:
    """The one of `names` that an attribute has the number of."""
    number = n.int_attr(name, default)
    if not 0 <= number < len(names):
        raise n.invalid(f"{name} is {number}", f"0 to {len(names) - 1}")
    return names[number]


def _numbers(n: OnnxNode, name: str) -> np.ndarray:
    """Floats, in an attribute of their own or as a tensor of another type; empty if absent."""
    if n.has_attr(f"{name}_as_tensor"):
        return n.tensor_attr(f"{name}_as_tensor").reshape(-1)
    return np.array(n.floats_attr(name, ()), np.float32)


def _old_forest(n: OnnxNode, dtype: np.dtype) -> tuple[TreeNodes, list[int], dict[NodeId, int]]:
    """Nodes that are named by tree and number; the first of a tree is its root."""
    forest, roots = TreeNodes(dtype), list[int]()
    number: dict[NodeId, int] = {}
    names = list(zip(n.ints_attr("nodes_treeids"), n.ints_attr("nodes_nodeids"), strict=True))
    seen: set[int] = set()
    for name in names:
        number[name] = forest.new()
        if name[0] not in seen:
            seen.add(name[0])
            roots.append(number[name])
    features, modes = n.ints_attr("nodes_featureids"), n.strs_attr("nodes_modes")
    values, missing = (
        _numbers(n, "nodes_values"),
        n.ints_attr("nodes_missing_value_tracks_true", ()),
    )
    yes, no = n.ints_attr("nodes_truenodeids"), n.ints_attr("nodes_falsenodeids")
    for k, name in enumerate(names):
        if modes[k] == "LEAF":
            continue
        if modes[k] not in MODES:
            raise n.invalid(f"a node asks {modes[k]!r}", f"one of {', '.join(MODES)}")
        ends = number[name[0], yes[k]], number[name[0], no[k]]
        nan = bool(missing[k]) if missing else False
        forest.ask(number[name], modes[k], features[k], float(values[k]), *ends, nan)
    return forest, roots, number


def _old_weights(
    n: OnnxNode, kind: str, targets: int, forest: TreeNodes, number: dict[NodeId, int], how: str
) -> np.ndarray:
    """What each node says of each target, from lists of entries."""
    values = _numbers(n, f"{kind}_weights")
    join = _JOINS[how]
    n.check_table(len(forest.feature), targets)
    table = np.full((len(forest.feature), targets), join.absent, values.dtype)
    names = zip(n.ints_attr(f"{kind}_treeids"), n.ints_attr(f"{kind}_nodeids"), strict=True)
    places = np.array([number[name] for name in names]), np.array(_places(n, f"{kind}_ids"))
    join.combine.at(table, places, values)
    return table


def _features(c: OnnxContext, n: OnnxNode) -> NodeValue:
    x = traced(c, n, n.required(0))
    return x if x.dtype.is_float else x.cast(F32)


def tree_ensemble_regressor(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Targets as what the leaves say of them, joined."""
    x, targets = _features(c, n), n.int_attr("n_targets", 1)
    how = n.str_attr("aggregate_function", "SUM")
    if how not in _JOINS:
        raise n.invalid(f"aggregate_function is {how!r}", f"one of {', '.join(_JOINS)}")
    with _lists_of(n):
        forest, roots, number = _old_forest(n, x.dtype.numpy)
        weights = _old_weights(n, "target", targets, forest, number, how)
    scores = _joined(c, x, forest, roots, weights, how).cast(F32)
    base = _numbers(n, "base_values")
    if base.size:
        scores = scores + traced(c, n, c.constant(base, F32))
    return (transformed(scores).name,)


def tree_ensemble_classifier(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The class of the greatest score, and the scores; one score decides between two classes."""
    x, labels = _features(c, n), labels_of(n, "classlabels_int64s")
    with _lists_of(n):
        forest, roots, number = _old_forest(n, x.dtype.numpy)
        weights = _old_weights(n, "class", len(labels), forest, number, "SUM")
    scores = _joined(c, x, forest, roots, weights, "SUM").cast(F32)
    base, named = _numbers(n, "base_values"), set(n.ints_attr("class_ids"))
    if len(labels) == 2 and len(named) == 1:
        single = column(scores, named.pop())
        if base.size:
            single = single + float(base[-1])
        return _binary(n, single, labels, bool((_numbers(n, "class_weights") >= 0).all()))
    if base.size:
        scores = scores + traced(c, n, c.constant(base, F32))
    return chosen(c, n, scores, labels), transformed(scores).name


def _binary(n: OnnxNode, single: NodeValue, labels: np.ndarray, is_chance: bool) -> tuple[str, ...]:
    """One score, which is a probability if no weight is negative.

    Of the transformations only the logistic one is applied, as other runtimes do.
    """
    label = either(single.apply("greater", 0.5 if is_chance else 0.0), labels).name
    if post_transform(n) == "LOGISTIC":
        return label, beside(-single, single).apply("sigmoid").name
    return label, beside(1 - single if is_chance else -single, single).name


def tree_ensemble(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Version 5: nodes numbered throughout, leaves in a list of their own."""
    x = _features(c, n)
    how = _named(n, "aggregate_function", tuple(_JOINS), 1)
    forest = TreeNodes(x.dtype.numpy)
    targets, values = _places(n, "leaf_targetids"), n.tensor_attr("leaf_weights").reshape(-1)
    modes = n.tensor_attr("nodes_modes").reshape(-1)
    nodes = [forest.new() for _ in modes]
    leaves = [forest.new() for _ in targets]
    with _lists_of(n):
        _ask_all(n, forest, nodes, leaves)
        shape = len(forest.feature), n.int_attr("n_targets", 1)
        n.check_table(*shape)
        weights = np.full(shape, _JOINS[how].absent)
        weights[leaves, targets] = values
        roots = [nodes[k] for k in _places(n, "tree_roots")]
    scores = _joined(c, x, forest, roots, weights, how)
    name = _named(n, "post_transform", _POST_TRANSFORMS, 0)
    return (POST_TRANSFORMS[name](scores).name,)


# In the order of their numbers in version 5.
_MODES = (*MODES, "BRANCH_MEMBER")
_POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def _ask_all(n: OnnxNode, forest: TreeNodes, nodes: Sequence[int], leaves: Sequence[int]) -> None:
    """Give every node its question."""
    features, splits = n.ints_attr("nodes_featureids"), n.tensor_attr("nodes_splits").reshape(-1)
    modes = n.tensor_attr("nodes_modes").reshape(-1)
    missing = n.ints_attr("nodes_missing_value_tracks_true", ())
    ends = []
    for side in ("true", "false"):
        places = _places(n, f"nodes_{side}nodeids")
        to_leaf = n.ints_attr(f"nodes_{side}leafs")
        ends.append(
            [leaves[p] if leaf else nodes[p] for p, leaf in zip(places, to_leaf, strict=True)]
        )
    sets = iter(_sets(n))
    for k, yes, no in zip(nodes, *ends, strict=True):
        nan = bool(missing[k]) if missing else False
        mode = _MODES[int(modes[k])]
        if mode == "BRANCH_MEMBER":
            forest.member(k, features[k], next(sets), yes, no, nan)
        else:
            forest.ask(k, mode, features[k], float(splits[k]), yes, no, nan)


def _sets(n: OnnxNode) -> list[list[float]]:
    """The sets of numbers that nodes ask for, which NaN ends."""
    found: list[list[float]] = [[]]
    given = (
        n.tensor_attr("membership_values").reshape(-1) if n.has_attr("membership_values") else ()
    )
    for value in given:
        if np.isnan(value):
            found.append([])
        else:
            found[-1].append(float(value))
    return found


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::TreeEnsemble": tree_ensemble,
    f"{DOMAIN}::TreeEnsembleClassifier": tree_ensemble_classifier,
    f"{DOMAIN}::TreeEnsembleRegressor": tree_ensemble_regressor,
}
