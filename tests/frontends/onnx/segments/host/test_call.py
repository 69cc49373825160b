"""What host operators see of their node."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.segments.host.host_calls import host_call
from tilewright.core.errors import ExecutionError


def test_inputs_that_are_left_out() -> None:
    call = host_call("Loop", ..., np.array(True))
    assert not call.present(0)
    assert call.integer(0, 7) == 7
    assert call.input(1)
    assert not call.present(2)
    assert call.input(2, "default") == "default"


def test_an_integer() -> None:
    assert host_call("SequenceAt", [], np.array([3])).integer(1) == 3


@for_each("value", [[np.array(3)], np.array([3, 4]), np.array([], np.int64)])
def test_what_is_no_single_integer(value: object) -> None:
    with pytest.raises(ExecutionError, match="input 1 is no tensor of one element"):
        host_call("SequenceAt", [], value).integer(1)


def test_failures_name_the_node() -> None:
    error = host_call("SequenceAt").failure("it is so", "do this")
    assert str(error).splitlines() == [
        "ExecutionError[host.SequenceAt]: SequenceAt: it is so",
        "  --> m.onnx, node here",
        "  help: do this",
    ]
