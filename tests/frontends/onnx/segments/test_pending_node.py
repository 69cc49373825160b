from __future__ import annotations

import numpy as np
from onnx import helper

from tilewright.frontends.onnx.segments.pending_node import host_op, operator_key, pending_node


def test_host_op() -> None:
    opsets = {"": 21}
    length = pending_node(helper.make_node("SequenceLength", ["s"], ["n"]), opsets, "f")
    relu = pending_node(helper.make_node("Relu", ["s"], ["n"]), opsets, "f")
    assert host_op(length) is not None
    assert host_op(relu) is None
    assert length.writes == ("n",)


def test_a_node_runs_on_the_host() -> None:
    node = pending_node(helper.make_node("SequenceLength", ["s"], ["n"]), {"": 21}, "f")
    given = {"s": [np.ones(2), np.ones(3)]}
    (count,) = node.run(given.__getitem__, lambda *args: None).values()
    assert count == 2


def test_operators_go_by_their_domain() -> None:
    assert operator_key(helper.make_node("Relu", ["x"], ["y"])) == "Relu"
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")
    assert operator_key(scaler) == "ai.onnx.ml::Scaler"
