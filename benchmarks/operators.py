"""The operators of `kernels.py` in torch, so that torch can run its ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def conv(x: Any, w: Any, *, pads: list[int], strides: list[int], group: int = 1) -> Any:
    """A convolution padded alike on both sides."""
    return F.conv2d(x, w, stride=strides, padding=pads[:2], groups=group)


def layer_norm(x: Any, scale: Any, bias: Any, *, axis: int, epsilon: float) -> Any:
    """Mean zero and variance one along the last axes."""
    return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


OPERATORS = {
    "MatMul": torch.matmul,
    "Mul": torch.mul,
    "Add": torch.add,
    "Relu": torch.relu,
    "Softmax": lambda x, axis: torch.softmax(x, axis),
    "Conv": conv,
    "LayerNormalization": layer_norm,
    "ReduceSum": lambda x, axes, keepdims: torch.sum(x, axes.tolist(), keepdim=bool(keepdims)),
}


class TorchKernel(torch.nn.Module):
    """A kernel's ONNX file as a module of its inputs by name, the constants being its buffers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        graph = onnx.load(str(path)).graph
        for tensor in graph.initializer:
            value = torch.from_numpy(numpy_helper.to_array(tensor).copy())
            self.register_buffer(tensor.name, value)
        self.steps = [
            (
                OPERATORS[node.op_type],
                tuple(node.input),
                {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
                node.output[0],
            )
            for node in graph.node
        ]

    def forward(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Return the output of the last node."""
        known = {**dict(self.named_buffers()), **inputs}
        for function, names, attributes, output in self.steps:
            known[output] = function(*(known[name] for name in names), **attributes)
        return known[self.steps[-1][3]]


def torch_kernel(path: Path) -> TorchKernel:
    """The kernel, ready to answer."""
    return TorchKernel(path).eval().requires_grad_(False)
