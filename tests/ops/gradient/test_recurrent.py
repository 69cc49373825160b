"""Recurrent layers say that they have no gradient."""

from __future__ import annotations

from tilewright.ops.registry import get_op


def test_marks() -> None:
    assert get_op("lstm_steps").no_gradient
