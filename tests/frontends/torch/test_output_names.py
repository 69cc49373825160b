from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from torch.utils._pytree import tree_flatten

from tilewright.frontends.torch.output_names import output_names

Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("results", "names"),
    [
        (1, [None]),
        ((1, [2]), [None, None]),
        ({"logits": 1, "states": (2, 3)}, ["logits", "states.0", "states.1"]),
        (Pair(1, {"x": 2}), ["left", "right.x"]),
        ((1, {"x": 2}), [None, "1.x"]),
        ({}, []),
    ],
)
def test_names_are_those_that_results_have(results: Any, names: list[str | None]) -> None:
    assert output_names(tree_flatten(results)[1]) == names
