"""The operators of `kernels.py` and `random_cases.py` in torch, which can so run their files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    pads: list[int],
    strides: list[int],
    dilations: list[int] | None = None,
    group: int = 1,
    kernel_shape: list[int] | None = None,
) -> Any:
    """A convolution padded alike on both sides; the weight says how large its window is."""
    dilation = dilations or [1, 1]
    return F.conv2d(x, w, bias, strides, pads[:2], dilation, group)


def conv_transpose(x: Any, w: Any, *, strides: list[int], kernel_shape: list[int]) -> Any:
    """A transposed convolution without padding."""
    return F.conv_transpose2d(x, w, stride=strides)


def max_pool(x: Any, *, kernel_shape: list[int], strides: list[int], pads: list[int]) -> Any:
    """The largest of each window."""
    return F.max_pool2d(x, kernel_shape, strides, pads[:2])


def average_pool(x: Any, *, kernel_shape: list[int], strides: list[int], pads: list[int]) -> Any:
    """The mean of each window, of what lies within the picture."""
    return F.avg_pool2d(x, kernel_shape, strides, pads[:2], count_include_pad=False)


def resize(x: Any, _: Any, scales: Any, *, mode: bytes, **coordinates: bytes) -> Any:
    """Twice as large; pixels lie at their indices ("asymmetric", "floor")."""
    if mode == b"nearest":
        return F.interpolate(x, scale_factor=scales[2:].tolist(), mode="nearest")
    # Torch has no such linear mode: between two rows lies their mean, the last is repeated.
    for axis in (2, 3):
        last = x.narrow(axis, x.shape[axis] - 1, 1)
        following = torch.cat([x.narrow(axis, 1, x.shape[axis] - 1), last], axis)
        x = torch.stack([x, (x + following) / 2], axis + 1).flatten(axis, axis + 1)
    return x


def layer_norm(x: Any, scale: Any, bias: Any, *, axis: int, epsilon: float = 1e-5) -> Any:
    """Mean zero and variance one along the last axes."""
    return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)


def instance_norm(x: Any, scale: Any, bias: Any) -> Any:
    """Mean zero and variance one of each channel's picture."""
    return F.instance_norm(x, weight=scale, bias=bias)


def reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction whose axes are an operand."""
    return lambda x, axes, keepdims: function(x, axes.tolist(), keepdim=bool(keepdims))


OPERATORS: dict[str, Callable[..., Any]] = {
    "MatMul": torch.matmul,
    "Mul": torch.mul,
    "Add": torch.add,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "Exp": torch.exp,
    "Abs": torch.abs,
    "Gelu": F.gelu,
    "HardSwish": F.hardswish,
    "HardSigmoid": lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
    "Softmax": lambda x, axis: torch.softmax(x, axis),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": lambda x: torch.mean(x, (2, 3), keepdim=True),
    "LayerNormalization": layer_norm,
    "InstanceNormalization": instance_norm,
    "ReduceSum": reduction(torch.sum),
    "ReduceMean": reduction(torch.mean),
    "ReduceMax": reduction(torch.amax),
    "Transpose": lambda x, perm: x.permute(perm).contiguous(),
    "Reshape": lambda x, shape: x.reshape(shape.tolist()),
    "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Gather": lambda table, indices: F.embedding(indices, table),
    "Resize": resize,
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
        known = {"": None, **dict(self.named_buffers()), **inputs}
        for function, names, attributes, output in self.steps:
            known[output] = function(*(known[name] for name in names), **attributes)
        return known[self.steps[-1][3]]


def torch_kernel(path: Path) -> TorchKernel:
    """The kernel, ready to answer."""
    return TorchKernel(path).eval().requires_grad_(False)
