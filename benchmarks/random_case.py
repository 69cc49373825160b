"""A random operator or block as a small ONNX model under construction, see `random_cases.py`.

Sizes are drawn evenly on a logarithmic scale; half of them are multiples of eight, as people choose
them, the others are arbitrary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
F32: np.dtype[Any] = np.dtype(np.float32)
# Arithmetic operations, and bytes that are read or written: milliseconds on one core.
WORK = (1e6, 2e9)
MOST_BYTES = 64e6


@dataclass
class Case:
    """A graph under construction: nodes in order, shapes of inputs, values of weights.

    `open_rows` leaves the first size of the inputs symbolic in the file. `work` is an estimate of
    operations, `bytes` of memory traffic.
    """

    kind: str
    random: Random
    text: str = ""
    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    largest_index: dict[str, int] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    open_rows: bool = False
    dtype: np.dtype[Any] = F32
    opset: int = OPSET
    work: float = 0.0
    bytes: float = 0.0

    def size(self, low: int, high: int) -> int:
        """A size between two bounds."""
        drawn = round(math.exp(self.random.uniform(math.log(low), math.log(high))))
        if drawn >= 8 and self.random.random() < 0.5:
            drawn = min(high // 8, round(drawn / 8)) * 8
        return drawn

    def input(self, *shape: int) -> str:
        """An input of numbers."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        self.bytes += self.dtype.itemsize * math.prod(shape)
        return name

    def indices(self, *shape: int, below: int) -> str:
        """An input of indices."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = shape
        self.largest_index[name] = below
        self.bytes += 8 * math.prod(shape)
        return name

    def output(self, *shape: int) -> None:
        """Count the bytes of a result."""
        self.bytes += self.dtype.itemsize * math.prod(shape)

    def weight(self, *shape: int, fan_in: int = 1) -> str:
        """A constant whose product with data of variance one sums to variance one."""
        values = np.random.default_rng(len(self.weights)).standard_normal(shape, dtype=np.float32)
        return self.constant((values / np.float32(math.sqrt(fan_in))).astype(self.dtype))

    def constant(self, values: np.ndarray) -> str:
        """A constant."""
        name = f"w{len(self.weights)}"
        self.weights[name] = values
        self.bytes += values.nbytes
        return name

    def add(self, op: str, *names: str, unread: int = 0, **attributes: Any) -> str:
        """Append a node; the name of its first result. So many more results are not read."""
        result = f"t{len(self.nodes)}"
        results = [result, *(f"{result}_{n}" for n in range(unread))]
        self.nodes.append(helper.make_node(op, list(names), results, **attributes))
        return result

    def conv(
        self,
        x: str,
        shape: tuple[int, ...],
        filters: int,
        window: int,
        stride: int = 1,
        dilation: int = 1,
        group: int = 1,
        bias: bool = True,
    ) -> tuple[str, tuple[int, ...]]:
        """A convolution that pads to keep the size (before striding); result and its shape."""
        batch, channels, height, width = shape
        pad = dilation * (window - 1) // 2
        fan_in = channels // group * window * window
        names = [x, self.weight(filters, channels // group, window, window, fan_in=fan_in)]
        if bias:
            names.append(self.weight(filters))
        result = self.add(
            "Conv",
            *names,
            kernel_shape=[window] * 2,
            pads=[pad] * 4,
            strides=[stride] * 2,
            dilations=[dilation] * 2,
            group=group,
        )
        out = [(n + 2 * pad - dilation * (window - 1) - 1) // stride + 1 for n in (height, width)]
        self.work += 2.0 * batch * filters * math.prod(out) * fan_in
        self.output(batch, filters, *out)
        return result, (batch, filters, out[0], out[1])

    def linear(self, x: str, rows: int, into: int, out: int, bias: bool = True) -> str:
        """A product with constant weights over the last axis, `rows` in all."""
        self.work += 2.0 * rows * into * out
        self.bytes += 4.0 * rows * out
        result = self.add("MatMul", x, self.weight(into, out, fan_in=into))
        return self.add("Add", result, self.weight(out)) if bias else result

    def within_bounds(self) -> bool:
        """Whether it is neither too small to time nor too large to repeat."""
        return WORK[0] <= self.work + self.bytes <= WORK[1] and self.bytes <= MOST_BYTES

    def model(self) -> onnx.ModelProto:
        """The ONNX model; the last node's result is `y`."""
        self.nodes[-1].output[0] = "y"
        floats, integers = helper.np_dtype_to_tensor_dtype(self.dtype), TensorProto.INT64
        inputs = []
        for name, shape in self.inputs.items():
            said = ("rows", *shape[1:]) if self.open_rows else shape
            element = integers if name in self.largest_index else floats
            inputs.append(helper.make_tensor_value_info(name, element, said))
        output = helper.make_tensor_value_info("y", floats, None)
        constants = [numpy_helper.from_array(v, n) for n, v in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.kind, inputs, [output], constants)
        opset = [helper.make_opsetid("", self.opset)]
        version = helper.find_min_ir_version_for(opset)
        model = helper.make_model(graph, opset_imports=opset, ir_version=version)
        return onnx.shape_inference.infer_shapes(model)  # the shape of `y`

    def arrays(self, seed: int) -> dict[str, np.ndarray]:
        """Random inputs."""
        rng = np.random.default_rng(seed)
        return {
            name: rng.integers(0, self.largest_index[name], shape)
            if name in self.largest_index
            else rng.standard_normal(shape, dtype=np.float32).astype(self.dtype)
            for name, shape in self.inputs.items()
        }

    def write(self, folder: Path, seed: int) -> None:
        """Write model and inputs."""
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(self.model(), str(folder / "model.onnx"))
        np.savez(folder / "inputs.npz", **self.arrays(seed))
