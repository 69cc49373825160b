"""Constant nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.frontends.onnx.context import OnnxContext, OnnxNode, identifier

_FORMS: dict[str, Callable[[OnnxNode], np.ndarray]] = {
    "value": lambda n: n.tensor_attr("value"),
    "value_float": lambda n: np.array(n.float_attr("value_float"), np.float32),
    "value_floats": lambda n: np.array(n.floats_attr("value_floats"), np.float32),
    "value_int": lambda n: np.array(n.int_attr("value_int"), np.int64),
    "value_ints": lambda n: np.array(n.ints_attr("value_ints"), np.int64),
    "value_string": lambda n: np.array(n.str_attr("value_string"), object),
    "value_strings": lambda n: np.array(n.strs_attr("value_strings"), object),
    "sparse_value": lambda n: n.sparse_attr("sparse_value"),
}


def constant(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A tensor written in the node, in one of several attributes."""
    for form, array in _FORMS.items():
        if n.has_attr(form):
            return (c.table(array(n), identifier(n.outputs[0])),)
    raise n.unsupported("its value has no supported form", f"supported: {', '.join(_FORMS)}")


CONVERTERS = {"Constant": constant}
