"""ONNX's test cases of single operators as machine code, against the interpreter.

Every operator has one case in the ordinary run, in as many element types as there are; all cases
run with `-m slow`.
"""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto

from tests.differential.native import check_native
from tests.frontends.onnx.test_node_cases import CASES, _array, _imported


def _operators(case: Any) -> tuple[str, ...]:
    return tuple(n.op_type for n in case.model.graph.node)


def _sample(cases: list[Any]) -> list[Any]:
    """The first case of every operator alone, and of the casts the first of every type."""
    chosen: dict[object, Any] = {}
    for case in cases:
        operators = _operators(case)
        if len(operators) == 1:
            types = tuple(v.type.tensor_type.elem_type for v in case.model.graph.input)
            narrow = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL} & set(types)
            chosen.setdefault((operators, *sorted(narrow)), case)
    return list(chosen.values())


SAMPLE = _sample(CASES)
REST = [case for case in CASES if case not in SAMPLE]


def _check(case: Any) -> None:
    initialized = {t.name for t in case.model.graph.initializer}
    names = [v.name for v in case.model.graph.input if v.name not in initialized]
    for given, _ in case.data_sets:
        inputs = dict(zip(names, map(_array, given), strict=False))
        graph = _imported(case.model, inputs)
        wanted = {v.name for v in graph.inputs}
        check_native(graph, {k: v for k, v in inputs.items() if k in wanted}).close()


@pytest.mark.parametrize("case", SAMPLE, ids=[case.name for case in SAMPLE])
def test_one_case_an_operator(case: Any) -> None:
    _check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", REST, ids=[case.name for case in REST])
def test_all_other_cases(case: Any) -> None:
    _check(case)


def test_the_sample_has_every_operator() -> None:
    every = {name for case in CASES if len(_operators(case)) == 1 for name in _operators(case)}
    assert every == {name for case in SAMPLE for name in _operators(case)}
