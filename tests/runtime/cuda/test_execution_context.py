from __future__ import annotations

import numpy as np

from tests.models import mlp
from tests.runtime.cuda.fake_driver import FakeDriver
from tilewright.driver.compile import compile_container
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.runtime.cuda.execution_context import ALIGNMENT, _in_a_row


def test_parts_lie_apart_and_aligned() -> None:
    starts, total = _in_a_row([1, 0, ALIGNMENT, ALIGNMENT + 1])
    assert starts == [0, ALIGNMENT, ALIGNMENT, 2 * ALIGNMENT]
    assert total == 4 * ALIGNMENT


def test_memory_is_given_back() -> None:
    model = mlp(2)
    driver = FakeDriver(lower(model, make_options(target="cuda")))
    compiled = CudaExecutable(compile_container(model, make_options(target="cuda")), driver)
    compiled(np.zeros((2, 16), np.float32))
    (context,) = compiled._program.contexts.values()
    assert context.arena % ALIGNMENT == 0
    before, graphs = len(driver.live), driver.live[-1]
    context.release()
    assert len(driver.live) == before - 3
    compiled(np.zeros((2, 16), np.float32))  # taken anew
    assert (len(driver.live), driver.live[-1]) == (before, graphs)
    context.close()
    assert (len(driver.live), driver.live[-1]) == (before - 3, graphs - 1)
