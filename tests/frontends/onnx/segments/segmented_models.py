"""Models in ONNX's text form, for tests of segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def parsed(text: str) -> onnx.ModelProto:
    """A model from the text of its graph."""
    return onnx.parser.parse_model(HEAD + text)


# The axis is an input: its value decides about the result's rank.
AXES = parsed("""
g (float[n, m] x, int64[k] axes) => (float[] y) {
    s = ReduceSum <keepdims = 0> (x, axes)
    y = Relu (s)
}
""")

# The shape is computed from data: the second segment waits for the first.
RESHAPED = parsed("""
g (float[n] x, int64[k] parts) => (float[] y) {
    two = Constant <value = int64[1] {2}> ()
    shape = Mul (parts, two)
    e = Exp (x)
    r = Reshape (e, shape)
    y = Neg (r)
}
""")

# Sequences between native nodes.
SEQUENCE = parsed("""
g (float[n, 4] x) => (float[] y, int64 length) {
    e = Abs (x)
    parts = SplitToSequence <axis = 0> (e)
    length = SequenceLength (parts)
    whole = ConcatFromSequence <axis = 1> (parts)
    y = Sqrt (whole)
}
""")

# How many dimensions are 1 decides about the result's rank; the second may have one row less.
SQUEEZED = parsed("""
g (float[N, 1, M] x) => (float[] y, float[] z) {
    one = Constant <value = int64[1] {1}> ()
    all = Constant <value = int64[1] {1000}> ()
    first = Constant <value = int64[1] {0}> ()
    s = Squeeze (x)
    y = Neg (s)
    r = Slice (x, one, all, first)
    z = Squeeze (r)
}
""")

SQUEEZED_BRANCH = parsed("""
g (float[N, 4] x, bool c) => (float y) {
    y = If (c) <
        then_branch = t () => (float a) { s = Squeeze (x)  a = ReduceSum <keepdims = 0> (s) },
        else_branch = e () => (float b) { b = Constant <value = float {0.0}> () }
    >
}
""")

# A loop that collects: what it carries grows.
GROWING = parsed("""
g (int64 n, float[m] x) => (float[] y) {
    start = SequenceEmpty ()
    true = Constant <value = bool {1}> ()
    all = Loop <body = b (int64 i, bool c, seq(float[m]) s) => (bool going, seq(float[m]) more) {
        going = Identity (c)
        f = CastLike (i, x)
        scaled = Mul (x, f)
        more = SequenceInsert (s, scaled)
    }> (n, true, start)
    y = ConcatFromSequence <axis = 0, new_axis = 1> (all)
}
""")

# A loop whose rows are as many as an input says.
ROWS = parsed("""
g (int64 n, float[m] x) => (float[k, m] y) {
    true = Constant <value = bool {1}> ()
    y = Loop <body = b (int64 i, bool c) => (bool going, float[m] row) {
        going = Identity (c)
        f = CastLike (i, x)
        row = Mul (x, f)
    }> (n, true)
}
""")

# Branches of different ranks, chosen by data.
BRANCHES = parsed("""
g (bool which, float[n, m] x) => (float[] y) {
    y = If (which) <
        then_branch = t () => (float[] a) { a = ReduceMax <keepdims = 0> (x) },
        else_branch = e () => (float[] b) { b = Neg (x) }
    >
}
""")

# Strings: moved and compared by native code, joined by the host.
TEXTS = parsed("""
g (string[n] a, string[n] b, int64[k] rows) => (string[] picked, bool[] same) {
    joined = StringConcat (a, b)
    picked = Gather (joined, rows)
    same = Equal (a, b)
}
""")


def with_weights(folder: Path, external: bool) -> Path:
    """A model in segments with a long weight, and one in a nested graph."""
    w = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["x", "v"], ["a"])],
        "then",
        [],
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(2 * w, "v")],
    )
    other = helper.make_graph(
        [helper.make_node("ReduceMax", ["x"], ["b"], keepdims=0)],
        "else",
        [],
        [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["y", "w"], ["x"]),
        helper.make_node("If", ["c"], ["z"], name="choice", then_branch=inner, else_branch=other),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 40]),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    folder.mkdir()
    path = folder / "model.onnx"
    onnx.save(model, path, save_as_external_data=external, size_threshold=100)
    return path
