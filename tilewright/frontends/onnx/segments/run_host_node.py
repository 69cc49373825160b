"""Run one node on the host: exceptions of its operator become errors of the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.core.errors import Error
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.segments.host.call import HostCall, HostOp, RunNested

# What NumPy raises for operands that it cannot take.
REFUSALS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def run_host_node(
    op: HostOp, node: OnnxNode, inputs: Sequence[Any], nested: RunNested
) -> dict[str, Any]:
    """The results of a node by name."""
    proto = node.proto
    call = HostCall(node, inputs, nested)
    try:
        results = op(call)
    except Error as error:
        raise error.at(node.loc) from error.__cause__
    except REFUSALS as error:
        if any(a.HasField("g") for a in proto.attribute):
            raise  # from a nested graph, in which native code runs
        raise call.failure(str(error)) from error
    if any(proto.output[len(results) :]):
        raise call.failure(f"it has {len(proto.output)} outputs, and gives {len(results)}")
    pairs = zip(proto.output, results, strict=False)
    return {name: result for name, result in pairs if name}
