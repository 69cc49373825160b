"""Optionals: a value, or `None`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp


def optional(call: HostCall) -> tuple[Any, ...]:
    """The input as an optional; an empty one if there is none."""
    return (call.input(0),)


def has_element(call: HostCall) -> tuple[Any, ...]:
    """Whether there is a value."""
    return (np.array(call.input(0) is not None),)


def get_element(call: HostCall) -> tuple[Any, ...]:
    """The value, which must be there."""
    value = call.input(0)
    if value is None:
        raise call.failure("the optional is empty", "ask OptionalHasElement first")
    return (value,)


HOST: dict[str, HostOp] = {
    "Optional": optional,
    "OptionalHasElement": has_element,
    "OptionalGetElement": get_element,
}
