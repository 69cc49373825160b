"""Small models for the tests of the fuzzers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from tilewright.fuzz.case_file import Case


def case_of(
    nodes: Sequence[NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: Sequence[str],
    constants: dict[str, np.ndarray] | None = None,
) -> Case:
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    graph = helper.make_graph(
        list(nodes),
        "g",
        declared,
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    return Case(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), (inputs,))
