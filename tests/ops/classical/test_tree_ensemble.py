from __future__ import annotations

import numpy as np
import pytest

from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.classical.tree_ensemble import TreesAttrs

# Two trees: nodes 0 to 2 are leaves; 3 asks for feature 1, then 4 for feature 0; 5 for feature 0.
ROOTS = np.array([3, 5])
FEATURE = np.array([0, 0, 0, 1, 0, 0])
VALUE = np.array([0, 0, 0, 0.5, -1, 2], "f4")
YES = np.array([0, 1, 2, 4, 0, 1])
NO = np.array([0, 1, 2, 2, 1, 2])


def test_paths() -> None:
    x = np.array([[-1, 0.5], [0, 0.25], [5, 1], [2, 0.5]], "f4")
    found = run_op("decision_trees", x, ROOTS, FEATURE, VALUE, YES, NO, attrs=TreesAttrs(2))
    np.testing.assert_array_equal(found, [[0, 1], [1, 1], [2, 2], [1, 1]])
    assert run_op(
        "decision_trees", x[:0], ROOTS, FEATURE, VALUE, YES, NO, attrs=TreesAttrs(2)
    ).shape == (0, 2)


def test_missing_features() -> None:
    x = np.array([[np.nan, np.nan]], "f4")
    tables = (ROOTS, FEATURE, VALUE, YES, NO)
    np.testing.assert_array_equal(
        run_op("decision_trees", x, *tables, attrs=TreesAttrs(2)), [[2, 2]]
    )
    missing = np.array([0, 0, 0, 1, 0, 1], bool)
    found = run_op("decision_trees", x, *tables, missing, attrs=TreesAttrs(2))
    np.testing.assert_array_equal(found, [[1, 1]])


def test_tables_that_do_not_fit() -> None:
    x = np.zeros((2, 2), "f4")
    for tables in (
        (ROOTS, FEATURE, VALUE.astype("f8"), YES, NO),
        (ROOTS, FEATURE[:3], VALUE, YES, NO),
        (ROOTS, FEATURE.astype("i4"), VALUE, YES, NO),
        (ROOTS, FEATURE, VALUE, YES, NO, YES),
    ):
        with pytest.raises(TypeCheckError):
            run_op("decision_trees", x, *tables, attrs=TreesAttrs(2))
