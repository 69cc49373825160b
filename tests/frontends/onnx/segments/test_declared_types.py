from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.segments.segmented_models import AXES, parsed
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.frontends.onnx.segments.declared_types import (
    check_dim_names,
    checked,
    type_text,
    value_port,
    with_dims,
)


@for_each(
    ("text", "good", "bad"),
    [
        ("float[2]", np.ones(2, np.float32), np.ones(3, np.float32)),
        ("string[n]", np.array(["a"]), np.ones(1)),
        ("seq(int64[n])", [np.array([1])], np.array([1])),
        ("optional(float[1])", None, np.array([1])),
        ("bool", np.array(True), np.array(1)),
        ("float[n]", np.ones(2, np.float32), [np.ones(1), np.ones(2)]),
    ],
)
def test_values_are_checked(text: str, good: Any, bad: Any) -> None:
    declared = parsed(f"g ({text} x) => ({text} y) {{ y = Identity (x) }}").graph.input[0].type
    checked("x", good, declared)
    with pytest.raises(ExecutionError, match="input x is"):
        checked("x", bad, declared)


def test_masks_are_not_ignored() -> None:
    declared = parsed("g (float[2] x) => (float[2] y) { y = Identity (x) }").graph.input[0].type
    with pytest.raises(ExecutionError, match="masked array"):
        checked("x", np.ma.masked_array(np.ones(2, np.float32), [True, False]), declared)


def test_types_as_text() -> None:
    inputs = parsed("""
        g (float[n, 2] a, seq(optional(int64[])) b) => (float y) { y = Identity (a) }
    """).graph.input
    assert [type_text(v.type) for v in inputs] == ["f32[n, 2]", "seq(optional(i64[...]))"]


def test_an_input_without_a_type() -> None:
    with pytest.raises(ExecutionError, match="of which type input x is"):
        checked("x", np.ones(3), onnx.TypeProto())


def test_dimensions_that_are_given() -> None:
    (x, _) = AXES.graph.input
    assert str(value_port("x", with_dims(x.type, {"n": 3}))) == "x: f32[3, m]"
    assert type_text(x.type) == "f32[n, m]", "the model stays as it is"
    check_dim_names({"n": 3}, [x])
    with pytest.raises(ConfigError, match="no dynamic dimension named q"):
        check_dim_names({"q": 3}, [x])
