from __future__ import annotations

import torch
from torch.fx import Graph

from tilewright.core.errors import Loc
from tilewright.frontends.torch.source_location import place_of


def test_the_innermost_line_of_the_user() -> None:
    node = Graph().placeholder("x")
    assert place_of(node) == Loc(node="x")
    torchs = f'  File "{torch.__file__}", line 7, in relu\n    code'
    node.meta["stack_trace"] = f'  File "/app/model.py", line 12, in forward\n    code\n{torchs}'
    assert place_of(node) == Loc("/app/model.py", "x", 12)
    assert str(place_of(node)) == "/app/model.py:12, node x"
    node.meta["stack_trace"] = torchs
    assert place_of(node).line == 7
