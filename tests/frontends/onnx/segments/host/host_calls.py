"""Calls of host operators in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import GraphProto, helper

from tilewright.core.errors import Loc
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.segments.host.call import HostCall, RunNested
from tilewright.frontends.onnx.segments.host.table import host_ops


def _nothing(graph: GraphProto, given: Mapping[str, Any]) -> Sequence[Any]:
    raise AssertionError(f"{graph.name} is not run here")


def host_call(op: str, *inputs: Any, nested: RunNested = _nothing, **attrs: Any) -> HostCall:
    """The call of one operator; `...` is an input that is left out."""
    names = ["" if value is ... else f"x{i}" for i, value in enumerate(inputs)]
    proto = helper.make_node(op, names, ["y", "z"], **attrs)
    values = [None if value is ... else value for value in inputs]
    return HostCall(OnnxNode(proto, tuple(names), Loc("m.onnx", "here"), 21), values, nested)


def run_host(op: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    """The results of one operator."""
    return host_ops()[op](host_call(op, *inputs, **attrs))
