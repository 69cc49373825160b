"""The operators of `kernels.py` in torch and in JAX, so that those two can run its ONNX files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

Table = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Kernel:
    """A graph of one output: its constants, and its nodes as (function, inputs, attributes)."""

    constants: Mapping[str, np.ndarray]
    steps: tuple[tuple[Callable[..., Any], tuple[str, ...], Mapping[str, Any], str], ...]

    def run(self, values: Mapping[str, Any]) -> Any:
        """The output, from the constants and inputs together."""
        known = dict(values)
        for function, names, attributes, output in self.steps:
            known[output] = function(*(known[name] for name in names), **attributes)
        return known[self.steps[-1][3]]


def read(path: Path, table: Table) -> Kernel:
    """The kernel in an ONNX file, its operators being those of the table."""
    graph = onnx.load(str(path)).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    steps = []
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        steps.append((table[node.op_type], tuple(node.input), attributes, node.output[0]))
    return Kernel(constants, tuple(steps))


def torch_kernel(path: Path) -> Any:
    """The kernel as a torch module of its inputs by name, the constants being its buffers."""
    import torch
    import torch.nn.functional as F

    def conv(x: Any, w: Any, *, pads: list[int], strides: list[int], group: int = 1) -> Any:
        return F.conv2d(x, w, stride=strides, padding=pads[:2], groups=group)

    def layer_norm(x: Any, scale: Any, bias: Any, *, axis: int, epsilon: float) -> Any:
        return F.layer_norm(x, x.shape[axis:], scale, bias, epsilon)

    kernel = read(
        path,
        {
            "MatMul": torch.matmul,
            "Mul": torch.mul,
            "Softmax": lambda x, axis: torch.softmax(x, axis),
            "Conv": conv,
            "LayerNormalization": layer_norm,
        },
    )

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in kernel.constants.items():
                self.register_buffer(name, torch.from_numpy(value.copy()))

        def forward(self, **inputs: Any) -> Any:
            return kernel.run({**dict(self.named_buffers()), **inputs})

    return Module().eval()


def jax_kernel(path: Path) -> Callable[[Mapping[str, Any]], Any]:
    """The kernel as a function for `jax.jit` of its inputs by name, with constants of its own."""
    import jax
    import jax.numpy as jnp

    def conv(x: Any, w: Any, *, pads: list[int], strides: list[int], group: int = 1) -> Any:
        padding = [(pads[0], pads[2]), (pads[1], pads[3])]
        return jax.lax.conv_general_dilated(x, w, strides, padding, feature_group_count=group)

    def layer_norm(x: Any, scale: Any, bias: Any, *, axis: int, epsilon: float) -> Any:
        mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + epsilon) * scale + bias

    kernel = read(
        path,
        {
            "MatMul": jnp.matmul,
            "Mul": jnp.multiply,
            "Softmax": jax.nn.softmax,
            "Conv": conv,
            "LayerNormalization": layer_norm,
        },
    )
    constants = {name: jax.device_put(value) for name, value in kernel.constants.items()}
    return lambda inputs: kernel.run({**constants, **inputs})
