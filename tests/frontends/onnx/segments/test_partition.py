"""What of a model makes one segment, and what waits for what."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.segments.segmented_models import (
    AXES,
    BRANCHES,
    RESHAPED,
    ROWS,
    SEQUENCE,
    TEXTS,
    parsed,
)
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BOOL, F32, I64, STRING
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.read import read_model
from tilewright.frontends.onnx.segments.partition import (
    NonTensor,
    OnnxSegment,
    import_segment,
    nested_remaining_graph,
    read_constant,
    remaining_graph,
)
from tilewright.frontends.onnx.segments.symbolic_ints import SymbolicInts
from tilewright.ir.types import tensor

N, M, K = Var("n"), Var("m"), Var("k")


def operators(segment: OnnxSegment) -> list[str]:
    assert segment.graph is not None
    return [n.op for n in segment.graph.nodes]


def waiting(segment: OnnxSegment) -> list[str]:
    return [p.proto.op_type for p in segment.rest.nodes]


def test_a_value_that_decides_about_ranks_is_waited_for() -> None:
    remaining = remaining_graph(read_model(AXES))
    types = {"x": tensor(F32, N, M), "axes": tensor(I64, K)}
    segment = import_segment(remaining, types)
    assert segment.graph is None
    assert waiting(segment) == ["ReduceSum", "Relu"]
    assert segment.sizes == {"axes"}
    known = import_segment(remaining, {**types, "axes": np.array([1])})
    assert known.graph is not None
    assert known.graph.tensor_type("y").shape == (N,)
    assert known.inputs == ("x",)
    assert known.outputs == ("y",)
    assert not known.rest.nodes


def test_what_can_run_before_is_one_stage() -> None:
    remaining = remaining_graph(read_model(RESHAPED))
    first = import_segment(remaining, {"x": tensor(F32, N), "parts": tensor(I64, K)})
    assert set(first.outputs) == {"shape", "e"}
    assert waiting(first) == ["Reshape", "Neg"]
    assert first.sizes == {"shape"}
    second = import_segment(first.rest, {"e": tensor(F32, N), "shape": np.array([2, 4])})
    assert second.outputs == ("y",)
    assert "neg" in operators(second)


def test_host_operators_follow_what_they_read() -> None:
    remaining = remaining_graph(read_model(SEQUENCE))
    first = import_segment(remaining, {"x": tensor(F32, N, 4)})
    assert first.outputs == ("e",)
    names = [p.proto.op_type for p in first.hosts]
    assert names == ["SplitToSequence", "SequenceLength", "ConcatFromSequence"]
    assert waiting(first) == ["Sqrt"]


def test_a_node_on_a_value_that_is_no_tensor_waits_for_the_host() -> None:
    m = parsed("g (seq(float[n]) s) => (seq(float[n]) t) { t = Identity (s) }")
    segment = import_segment(remaining_graph(read_model(m)), {"s": NonTensor()})
    assert [p.proto.op_type for p in segment.hosts] == ["Identity"]
    assert segment.graph is None


def test_a_known_branch_is_written_out() -> None:
    remaining = remaining_graph(read_model(BRANCHES))
    types = {"which": tensor(BOOL), "x": tensor(F32, N, M)}
    assert import_segment(remaining, types).wants == {"which"}
    for which, rank in ((True, 0), (False, 2)):
        segment = import_segment(remaining, {**types, "which": np.array(which)})
        assert segment.graph is not None
        assert segment.graph.tensor_type("y").rank == rank


def test_texts_are_inputs_even_if_they_are_constants() -> None:
    segment = import_segment(
        remaining_graph(read_model(TEXTS)),
        {"a": tensor(STRING, N), "b": tensor(STRING, N), "rows": tensor(I64, K)},
    )
    assert segment.outputs == ("same",)
    assert [p.proto.op_type for p in segment.hosts] == ["StringConcat"]
    assert waiting(segment) == ["Gather"]


def test_an_absent_optional_is_an_absent_input() -> None:
    m = parsed("g (float[n] x, optional(float) top) => (float[n] y) { y = Clip (x, , top) }")
    segment = import_segment(remaining_graph(read_model(m)), {"x": tensor(F32, N), "top": None})
    assert segment.graph is not None
    assert segment.inputs == ("x",)


def test_a_number_of_steps_is_a_size() -> None:
    remaining = remaining_graph(read_model(ROWS))
    types = {"n": tensor(I64), "x": tensor(F32, M)}
    segment = import_segment(remaining, types)
    assert (segment.wants, segment.sizes) == (set(), {"n"})
    known = import_segment(remaining, {**types, "n": SymbolicInts(np.array(5))})
    assert known.graph is not None
    assert known.inputs == ("n", "<sizes in n>", "x")
    assert known.carriers == {"<sizes in n>": ("n", (0,))}
    assert known.graph.tensor_type("y").shape == (Var("n_v0"), M)


def test_nested_graphs_read_what_is_around_them() -> None:
    model = read_model(BRANCHES)
    remaining = remaining_graph(model)
    graph = model.proto.graph.node[0].attribute[1].g
    inner = nested_remaining_graph(remaining, graph, model.opsets, {"x"})
    assert inner.reads() == {"x", graph.output[0].name}


def test_a_constant_that_cannot_be_read_is_of_a_file() -> None:
    def broken() -> np.ndarray:
        raise FrontendError("onnx.external-path", "lies elsewhere")

    with pytest.raises(FrontendError, match=r"m\.onnx"):
        read_constant(broken, "m.onnx")
