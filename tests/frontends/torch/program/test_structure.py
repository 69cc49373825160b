from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from torch.utils._pytree import tree_flatten, treespec_dumps

from tilewright.frontends.torch.program.structure import build

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "results",
    [1, (1,), (1, 2), [1, (2, 3)], {"a": 1, "b": (2, [3])}, ({"x": 1}, 2), (), {}],
)
def test_results_are_nested_as_they_were(results: Any) -> None:
    leaves, spec = tree_flatten(results)
    assert build(treespec_dumps(spec), leaves) == results
