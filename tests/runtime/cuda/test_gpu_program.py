from __future__ import annotations

import numpy as np
import pytest

from tests.models import mlp
from tests.runtime.cuda.test_executable import _open
from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import gpu_program
from tilewright.runtime.cuda.gpu_program import first_elements


def test_old_sets_of_sizes_lose_their_memory_and_then_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_program, "MAX_CONTEXTS", 4)
    monkeypatch.setattr(gpu_program, "MAX_WITH_MEMORY", 2)
    compiled, _ = _open(mlp("N"), interpret=False)
    right = [compiled(np.ones((n, 16), np.float32)) for n in range(1, 7)]
    contexts = list(compiled._program.contexts.values())
    assert [c.plan.inputs[0][0] for c in contexts] == [3, 4, 5, 6]
    assert [bool(c._arena) for c in contexts] == [False, False, True, True]
    for n in (1, 4, 6):
        np.testing.assert_array_equal(compiled(np.ones((n, 16), np.float32)), right[n - 1])


def test_nothing_runs_where_a_kernel_has_failed() -> None:
    compiled, driver = _open(mlp(2), interpret=False)
    x = np.zeros((2, 16), np.float32)
    compiled(x)
    driver.failures.lost = ExecutionError("cuda.kernel", "kernel softmax failed: illegal address")
    with pytest.raises(ExecutionError, match="kernel softmax failed"):
        compiled(x)
    compiled.close()
    with pytest.raises(ExecutionError, match="closed"):
        compiled(x)


def test_a_part_of_a_result() -> None:
    assert first_elements(np.arange(12).reshape(4, 3), (2, 2)).tolist() == [[0, 1], [2, 3]]
