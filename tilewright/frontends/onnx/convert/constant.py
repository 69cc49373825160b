"""Constant nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.frontends.onnx.context import Context, OnnxNode, identifier

_FORMS: dict[str, Callable[[OnnxNode], np.ndarray]] = {
    "value": lambda n: n.tensor_attr("value"),
    "value_float": lambda n: np.array(n.float_attr("value_float"), np.float32),
    "value_floats": lambda n: np.array(n.floats_attr("value_floats"), np.float32),
    "value_int": lambda n: np.array(n.int_attr("value_int"), np.int64),
    "value_ints": lambda n: np.array(n.ints_attr("value_ints"), np.int64),
}


def constant(c: Context, n: OnnxNode) -> tuple[str, ...]:
    """A tensor written in the node, in one of several attributes."""
    for form, array in _FORMS.items():
        if n.has_attr(form):
            return (c.g.constant(array(n), identifier(n.outputs[0])),)
    raise n.unsupported("its value has no supported form", f"supported: {', '.join(_FORMS)}")


CONVERTERS = {"Constant": constant}
