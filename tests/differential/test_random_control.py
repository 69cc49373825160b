"""Random nests of loops and branches: native results are those of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import compare
from tests.differential.random_control import RandomControl
from tilewright.driver.compile import compile


@pytest.mark.parametrize("seed", range(5))
def test_nests_of_loops_and_branches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = RandomControl(rng).graph(nodes=7, depth=2)
    with compile(graph, threads=2, cache=False) as model:
        for steps, n in ((3, 5), (0, 4), (2, 17)):
            given = {name: rng.normal(size=n).astype(np.float32) for name in "xy"}
            compare(graph, model, {**given, "t": np.zeros(steps, np.float32)}, scale=50)
