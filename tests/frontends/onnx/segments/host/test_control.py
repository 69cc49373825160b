"""Loops on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, helper

from tests.for_each import for_each
from tests.frontends.onnx.segments.host.host_calls import run_host
from tilewright.core.errors import ExecutionError
from tilewright.frontends.onnx.segments.host.control import OF_VALUES

F = TensorProto.FLOAT


def body(inputs: str, outputs: str) -> GraphProto:
    made = [
        [helper.make_tensor_value_info(name, F, None) for name in names.split()]
        for names in (inputs, outputs)
    ]
    return helper.make_graph([], "body", *made)


def counting(_: GraphProto, given: Mapping[str, Any]) -> Sequence[Any]:
    """Doubles what it carries, collects it, and ends beyond 20."""
    twice = given["v"] * 2
    return [np.array(twice < 20), twice, given["v"]]


def loop(limit: Any, going: Any) -> tuple[Any, ...]:
    graph = body("i c v", "c2 w row")
    return run_host("Loop", limit, going, np.array(3), nested=counting, body=graph)


def test_it_ends_by_its_condition_or_its_limit() -> None:
    last, rows = loop(..., np.array(True))
    assert (last, rows.tolist()) == (24, [3, 6, 12])
    last, rows = loop(np.array(2), ...)
    assert (last, rows.tolist()) == (12, [3, 6])


def test_what_no_step_collected_has_no_shape() -> None:
    with pytest.raises(ExecutionError, match="ran no step"):
        loop(np.array(0), ...)


def test_rows_of_different_shapes() -> None:
    def growing(_: GraphProto, given: Mapping[str, Any]) -> Sequence[Any]:
        return [np.array(True), given["v"], np.ones(int(given["i"]))]

    graph = body("i c v", "c2 w row")
    with pytest.raises(ExecutionError, match="differs in shape"):
        run_host("Loop", np.array(2), ..., np.array(3), nested=growing, body=graph)


@for_each(("turn", "axis"), [(0, 0), (1, 1), (1, -1)])
def test_a_scan(turn: int, axis: int) -> None:
    def sums(_: GraphProto, given: Mapping[str, Any]) -> Sequence[Any]:
        total = given["s"] + given["x"]
        return [total, total]

    x = np.arange(6.0).reshape(3, 2)
    last, rows = run_host(
        "Scan",
        np.zeros(2),
        x.T if axis else x,
        nested=sums,
        body=body("s x", "t row"),
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[turn],
        scan_output_axes=[axis],
        scan_output_directions=[turn],
    )
    expected = np.cumsum(x[::-1], 0)[::-1] if turn else np.cumsum(x, 0)
    assert last.tolist() == [6, 9]
    assert rows.tolist() == (expected.T if axis else expected).tolist()


def test_a_sequence_mapped() -> None:
    def add(_: GraphProto, given: Mapping[str, Any]) -> Sequence[Any]:
        return [given["a"] + given["b"] + given["k"]]

    graph, k = body("a b k", "s"), np.array(10)
    (found,) = run_host("SequenceMap", [np.ones(2), np.ones(3)], [k, k], k, nested=add, body=graph)
    assert [x.tolist() for x in found] == [[21, 21], [21, 21, 21]]


def test_a_body_with_other_inputs() -> None:
    graph = body("a b", "c")
    with pytest.raises(ExecutionError, match="takes 2 values, gives 1"):
        run_host("SequenceMap", [np.ones(2)], body=graph)
    with pytest.raises(ExecutionError, match="takes 2 values, gives 1"):
        run_host("Loop", np.array(2), ..., np.array(3), body=graph)
    with pytest.raises(ExecutionError, match="takes 3 values, gives 1"):
        run_host("Loop", np.array(2), ..., np.array(3), body=body("i c v", "c2"))
    with pytest.raises(ExecutionError, match="takes 2 values, gives 1"):
        run_host("Scan", np.ones(2), body=graph, num_scan_inputs=1)


def test_a_condition_of_two_truths() -> None:
    with pytest.raises(ExecutionError, match="its condition is no tensor of one element"):
        loop(np.array(2), np.array([True, False]))


def test_what_is_mapped_is_a_sequence() -> None:
    x = np.ones(2)
    for given in ((x, [x]), ([x, x], [x])):
        with pytest.raises(ExecutionError, match="no sequence, or others differ"):
            run_host("SequenceMap", *given, body=body("a b", "c"))


def test_identity_of_any_value() -> None:
    assert set(OF_VALUES) == {"Identity"}
