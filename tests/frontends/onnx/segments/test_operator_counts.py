from __future__ import annotations

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.frontends.onnx.segments.segmented_models import AXES, GROWING, ROWS, TEXTS, parsed
from tilewright.frontends.onnx.segments.operator_counts import OperatorCounts
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource

# What is carried changes its shape by steps, until data say so: no bound is known.
CHANGING = parsed("""
g (float[n] x, float limit) => (float[] y) {
    true = Constant <value = bool {1}> ()
    y = Loop <body = b (int64 i, bool c, float[k] v) => (bool going, float[k2] w) {
        w = Concat <axis = 0> (v, v)
        total = ReduceSum <keepdims = 0> (w)
        going = Less (total, limit)
    }> (, true, x)
}
""")

# The same behind a reshape whose rank is known only in a run.
WAITING = parsed("""
g (float[n] x, float limit, int64[k] shape) => (float[] y) {
    true = Constant <value = bool {1}> ()
    r = Reshape (x, shape)
    y = Loop <body = b (int64 i, bool c, float[k] v) => (bool going, float[k2] w) {
        w = Concat <axis = 0> (v, v)
        total = ReduceSum <keepdims = 0> (w)
        going = Less (total, limit)
    }> (, true, r)
}
""")

# A loop on the host inside one, and a native loop beside it.
NESTED = parsed("""
g (int64 n, float[4] x, float limit) => (float[] y, float[4] z) {
    true = Constant <value = bool {1}> ()
    y = Loop <body = b (int64 i, bool c, float[k] v) => (bool going, float[k2] w) {
        going = Identity (c)
        w = Loop <body = e (int64 j, bool d, float[p] s) => (bool more, float[q] t) {
            t = Concat <axis = 0> (s, s)
            total = ReduceSum <keepdims = 0> (t)
            more = Less (total, limit)
        }> (, c, v)
    }> (n, true, x)
    z = Loop <body = a (int64 i, bool c, float[4] v) => (bool going, float[4] w) {
        going = Identity (c)
        w = Add (v, x)
    }> (n, true, x)
}
""")


def counts(model: onnx.ModelProto) -> OperatorCounts:
    """Those before a run."""
    return OnnxSegmentSource(model).operators


def test_operators_of_nested_graphs_count() -> None:
    found = counts(GROWING)
    assert found.total == 8
    assert found.host == {
        "ConcatFromSequence": 1,
        "Loop": 1,
        "SequenceEmpty": 1,
        "SequenceInsert": 1,
    }
    assert str(found).startswith("8 operators, 4 on the host: ConcatFromSequence x1, Loop x1, ")


def test_compiled_operators() -> None:
    assert counts(AXES).data() == {"operators": 2, "host_operators": {}}
    assert str(counts(AXES)) == "2 operators, 0 on the host"
    assert counts(TEXTS).host == {"StringConcat": 1}
    assert counts(ROWS).host == {}


def test_a_loop_on_the_host_is_no_compiled_operator() -> None:
    assert counts(CHANGING).host == {"Loop": 1}


@pytest.mark.parametrize(
    ("model", "given", "before", "after"),
    [
        (CHANGING, [np.ones(3, np.float32), np.float32(20)], 1, 1),
        (WAITING, [np.ones(4, np.float32), np.float32(20), np.array([2, 2])], 0, 1),
        (NESTED, [np.int64(2), np.ones(4, np.float32), np.float32(9)], 1, 2),
    ],
    ids=["changing", "waiting", "nested"],
)
def test_what_a_run_finds_out_counts(
    model: onnx.ModelProto, given: list[np.ndarray], before: int, after: int
) -> None:
    compiled = tw.compile(model, threads=1)
    assert compiled.operators.host.get("Loop", 0) == before
    compiled(*map(np.asarray, given))
    assert compiled.operators.host == {"Loop": after}
    assert f"{after} on the host: Loop x{after}" in compiled.explain()
    compiled.close()
