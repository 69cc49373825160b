"""Optionals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError

X = np.ones(2)


def test_with_and_without_a_value() -> None:
    assert run_host("Optional", X)[0] is X
    assert run_host("Optional")[0] is None
    assert run_host("OptionalHasElement", X)[0]
    assert not run_host("OptionalHasElement", None)[0]
    assert not run_host("OptionalHasElement")[0]
    assert run_host("OptionalGetElement", X)[0] is X
    with pytest.raises(ExecutionError, match="the optional is empty"):
        run_host("OptionalGetElement", None)
