"""ONNX's own test cases of single operators, imported and interpreted.

A case is taken if every operator in it has a converter (or is a function of such) and its inputs
and outputs are tensors of supported types. Shape-like operands are inputs in these cases; where one
must be known when compiling, the case's integers are made constants first.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests.conformance.onnx_cases import loaded_cases
from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import NOWHERE, Error, UnsupportedError
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.functions import function_body
from tilewright.frontends.onnx.importer import import_onnx, input_type
from tilewright.frontends.onnx.model.dims import Dims
from tilewright.frontends.onnx.model.dtypes import DTYPES
from tilewright.frontends.onnx.table import converters
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.ops.interpret import run_graph

# The cases are dealt out to so many tests.
PARTS = 20
SUPPORTED = set(DTYPES) - {TensorProto.STRING}

# Functions whose body depends on the types of inputs, of operators that are all supported.
LOSSES = ("NegativeLogLikelihoodLoss",)

# Cases that are left out although their operators are supported: a pattern, and why.
EXCLUDED = {
    r"test_bernoulli.*": "random numbers",
    r"test_range_.*_delta_expanded": "the model computes the number of steps: it runs in segments",
}

# Cases whose expected results are themselves rounded worse than their tolerance: a pattern, and the
# absolute error to allow.
ROUNDED = {r"test_dft_inverse(_opset19)?": 1e-6}


def _types(model: onnx.ModelProto) -> list[int]:
    values = [*model.graph.input, *model.graph.output]
    kinds = {v.type.WhichOneof("value") for v in values}
    found = [t.data_type for t in model.graph.initializer]
    for node in model.graph.node:
        for attribute in node.attribute:
            found += [attribute.t.data_type] if attribute.HasField("t") else []
            found += [attribute.i] if attribute.name in ("to", "dtype") else []
    if kinds - {"tensor_type"}:
        return [TensorProto.UNDEFINED]
    return found + [v.type.tensor_type.elem_type for v in values]


def _is_convertible(
    node: onnx.NodeProto, opsets: dict[str, int], types: dict[str, TensorType]
) -> bool:
    """Whether there is a converter, or ONNX makes the operator of such that have."""
    domain = node.domain if node.domain != "ai.onnx" else ""
    if (f"{domain}::{node.op_type}" if domain else node.op_type) in converters():
        return True
    given = [types.get(name) for name in node.input]
    if node.op_type in LOSSES and not all(given):  # inside of another function
        return True
    body = function_body(OnnxNode(node, (), NOWHERE, opsets.get(domain, 0)), given)
    return body is not None and all(_is_convertible(inner, opsets, {}) for inner in body.node)


def _is_taken(case: Any) -> bool:
    model = case.model
    opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
    if set(_types(model)) - SUPPORTED:
        return False
    types = {v.name: input_type(v, Dims({})) for v in model.graph.input}
    return all(_is_convertible(node, opsets, types) for node in model.graph.node) and not any(
        re.fullmatch(pattern, case.name) for pattern in EXCLUDED
    )


@cache
def _taken() -> list[Any]:
    return [case for case in loaded_cases(kind="node") if _is_taken(case)]


def _array(value: Any) -> np.ndarray:
    is_proto = isinstance(value, TensorProto)
    return numpy_helper.to_array(value) if is_proto else np.asarray(value)


def _frozen(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model with these inputs as initializers."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    frozen.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in values.items())
    return frozen


def _imported(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Graph:
    """The graph, with as few inputs made constants as it takes."""
    later = dict(list(inputs.items())[1:])
    integers = {k: v for k, v in later.items() if v.dtype.kind in "iub"}
    choices = [{}, integers, later, inputs]
    for choice in choices:
        try:
            return import_onnx(_frozen(model, choice))
        except UnsupportedError as error:
            if choice is choices[-1] or error.code == "onnx.operator":
                raise
    raise AssertionError


def _close(found: np.ndarray, expected: np.ndarray, rtol: float, atol: float) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    dtype = from_numpy(expected.dtype)
    if dtype.is_small:
        np.testing.assert_array_equal(found.astype("f8"), expected.astype("f8"))
        return
    if not dtype.is_float:
        np.testing.assert_array_equal(found, expected)
        return
    # The cases round 16-bit floats after every step, where we round once.
    rtol = max(rtol, 2 * float(ml_dtypes.finfo(expected.dtype).eps))
    np.testing.assert_allclose(found.astype("f8"), expected.astype("f8"), rtol=rtol, atol=atol)


def _check(case: Any) -> None:
    initialized = {t.name for t in case.model.graph.initializer}
    names = [v.name for v in case.model.graph.input if v.name not in initialized]
    for given, expected in case.data_sets:
        inputs = dict(zip(names, map(_array, given), strict=False))
        graph = _imported(case.model, inputs)
        wanted = {v.name for v in graph.inputs}
        found = run_graph(graph, {k: v for k, v in inputs.items() if k in wanted})
        atol = max([case.atol, *(a for p, a in ROUNDED.items() if re.fullmatch(p, case.name))])
        for name, value in zip(graph.outputs, expected, strict=True):
            _close(found[name], _array(value), case.rtol, atol)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.slow
def test_cases(part: int) -> None:
    wrong = {}
    for case in _taken()[part::PARTS]:
        try:
            _check(case)
        except (AssertionError, Error) as error:
            wrong[case.name] = str(error)
    assert not wrong


@pytest.mark.slow
def test_no_exclusion_is_stale_and_enough_is_left() -> None:
    names = [case.name for case in loaded_cases(kind="node")]
    for pattern in (*EXCLUDED, *ROUNDED):
        assert any(re.fullmatch(pattern, name) for name in names), pattern
    assert len(_taken()) >= 1560
