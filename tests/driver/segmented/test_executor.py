"""Stages are compiled once for a form of their values."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from tests.frontends.onnx.convert.run_node import node_model
from tests.frontends.onnx.segments.segmented_models import AXES, RESHAPED, ROWS, SEQUENCE, parsed
from tilewright.core.errors import Error, ExecutionError, TypeCheckError
from tilewright.driver.compile import compile
from tilewright.driver.segmented.executor import SegmentExecutor
from tilewright.frontends.onnx.model.read import read_model
from tilewright.frontends.onnx.segments.partition import remaining_graph
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.cpu.executable import Executable


class Counting:
    """Compiles, and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: Graph) -> Executable:
        self.count += 1
        made = compile(graph, threads=1, cache=False)
        assert isinstance(made, Executable)
        return made


def test_a_stage_serves_all_sizes() -> None:
    compiled = Counting()
    program = SegmentExecutor(remaining_graph(read_model(RESHAPED)), compiled)
    for parts in ([1, 1], [1, 2], [1, 2], [2, 1]):
        shape = 2 * np.array(parts)
        x = np.ones(shape.prod(), np.float32)
        (y,) = program.run({"x": x, "parts": np.array(parts)})
        assert y.shape == tuple(shape)
    assert compiled.count == 2, "one for each segment"


def test_numbers_of_elements_are_sizes() -> None:
    m = parsed("""
        g (float[n] x, int64[k] shape, int64 last) => (float[] y, int64[] r, float[] f) {
            zero = Constant <value = int64 {0}> ()
            one = Constant <value = int64 {1}> ()
            y = Reshape (x, shape)
            r = Range (zero, last, one)
            f = ConstantOfShape (shape)
        }
    """)
    compiled = Counting()
    program = SegmentExecutor(remaining_graph(read_model(m)), compiled)
    x = np.arange(12, dtype=np.float32)
    for shape, count in (([3, 4], 1), ([2, 6], 1), ([1, 12], 2), ([2, 2, 3], 3), ([6, 2], 3)):
        given = {"x": x, "shape": np.array(shape), "last": np.array(sum(shape))}
        y, r, f = program.run(given)
        np.testing.assert_array_equal(y, x.reshape(shape))
        np.testing.assert_array_equal(r, np.arange(sum(shape)))
        assert f.shape == tuple(shape)
        assert compiled.count == count, "0 and 1 are others than sizes above"


def test_sizes_are_exact_where_symbols_do_not_do() -> None:
    m = parsed("""
        g (int64[n] i, float[] values) => (float[] y) {
            depth = Constant <value = int64 {3}> ()
            y = OneHot (i, depth, values)
        }
    """)
    program = SegmentExecutor(remaining_graph(read_model(m)), Counting())
    (y,) = program.run({"i": np.array([0, 2]), "values": np.array([0, 5], np.float32)})
    np.testing.assert_array_equal(y, [[5, 0, 0], [0, 0, 5]])
    assert program.exact


def test_values_that_do_not_fit_leave_sizes_symbolic() -> None:
    program = SegmentExecutor(remaining_graph(read_model(RESHAPED)), Counting())
    rest = None
    for parts, size in (([1, 1], 5), ([1, 1], 4)):
        given = {"x": np.ones(size, np.float32), "parts": np.array(parts)}
        rest = program.step(given)
        assert rest is not None
        if size == 5:
            with pytest.raises(Error):
                rest.run(given)
        assert not rest.exact


def test_only_some_plans_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.driver.segmented.executor.MAX_PLANS", 2)
    program = SegmentExecutor(remaining_graph(read_model(AXES)), Counting())
    x = np.ones((2, 3), np.float32)
    for axes in ([0], [1], [0, 1], [0]):
        (y,) = program.run({"x": x, "axes": np.array(axes)})
        np.testing.assert_array_equal(y, x.sum(tuple(axes)))
        assert len(list(program.executables())) <= 2


def test_one_plan_for_all_numbers_of_steps() -> None:
    program = SegmentExecutor(remaining_graph(read_model(ROWS)), Counting())
    x = np.arange(3, dtype=np.float32)
    for n in (2, 7, 30, 1, 0):
        (y,) = program.run({"n": np.array(n), "x": x})
        np.testing.assert_array_equal(y, np.arange(n)[:, None] * x[None])
    # those of 0 and 1 are plans of their own
    assert len(list(program.executables())) == 3


def test_what_numpy_refuses_on_the_host_is_an_error_of_the_node() -> None:
    m = parsed("""
        g (float[3,4] x, seq(float[n]) s) => (seq(float[]) y, float[] z) {
            y = SplitToSequence <axis = 7> (x)
            z = ConcatFromSequence <axis = 5> (s)
        }""")
    program = SegmentExecutor(remaining_graph(read_model(m)), Counting())
    with pytest.raises(ExecutionError, match=r"host.SplitToSequence.*\n.*SplitToSequence\(y\)"):
        program.run({"x": np.ones((3, 4), np.float32), "s": [np.ones(2, np.float32)]})


def test_a_host_operator_that_gives_fewer_results_than_the_node_names() -> None:
    m = parsed("""
        g (seq(float[n]) s) => (seq(float[n]) y) {
            y, z = SequenceMap (s) <body = b (float[n] a) => (float[n] c) { c = Neg (a) }>
        }""")
    program = SegmentExecutor(remaining_graph(read_model(m)), Counting())
    with pytest.raises(ExecutionError, match="it has 2 outputs, and gives 1"):
        program.run({"s": [np.ones(2, np.float32)]})


def test_graph_breaks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tilewright.driver"):
        x = np.ones((2, 4), np.float32)
        with compile(RESHAPED, threads=1, cache=False) as model:
            model(x.reshape(-1), np.array([1, 2]))
        with compile(SEQUENCE, threads=1, cache=False) as model:
            model(x)
    lines = [r.getMessage() for r in caplog.records]
    assert [line for line in lines if line.startswith(("g is", "graph break"))] == [
        "g is compiled in segments: Reshape: input 1 (shape) is known only when the model runs "
        "(node Reshape(r))",
        "graph break: 2 nodes wait until shape is known",
        "g is compiled in segments: SplitToSequence runs on the host, between native segments "
        "(node SplitToSequence(parts))",
        "graph break: SplitToSequence, SequenceLength, ConcatFromSequence on the host; "
        "1 nodes wait",
    ]


def test_sizes_that_a_segment_refuses_are_tried_as_they_are() -> None:
    expanded = node_model("Expand", (np.ones((3, 4), np.float32), np.array([3, 4])))
    with compile(expanded, threads=1, cache=False) as model:
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        np.testing.assert_array_equal(model(x, np.array([3, 4])), x)
        with pytest.raises(TypeCheckError, match="do not broadcast\\n  --> test, node node"):
            model(x, np.array([2, 4]))
        np.testing.assert_array_equal(model(x, np.array([3, 1])), x)
