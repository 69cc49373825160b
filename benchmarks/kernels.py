"""Single kernels to measure: tiny ONNX models, one to three operators each, all in f32.

    python benchmarks/kernels.py                  # all, into benchmarks/results/cache/kernels
    python benchmarks/latency.py kernels          # then measure them
    python benchmarks/kernels.py --group tuned    # those that tuners are compared on

`gemm`, `softmax` and `attention` take every operand at run time; `linear`, `conv` and `layernorm`
hold their weights as constants, which an engine may pack in advance.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from operators import torch_kernel

CACHE = Path(__file__).parent / "results" / "cache"
OPSET = 17

Shape = Sequence[int]


@dataclass
class Kernel:
    """A small graph as it is written down: shapes of inputs and weights, nodes in order."""

    name: str
    inputs: dict[str, Shape]
    output: Shape
    weights: dict[str, Shape] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)

    def add(self, op: str, names: Sequence[str], result: str = "y", **attributes: Any) -> Kernel:
        """Append a node; the last one gives `y`."""
        self.nodes.append(helper.make_node(op, list(names), [result], **attributes))
        return self

    def arrays(self) -> dict[str, np.ndarray]:
        """Random inputs."""
        rng = np.random.default_rng(0)
        return {n: rng.standard_normal(s, dtype=np.float32) for n, s in self.inputs.items()}

    def model(self) -> onnx.ModelProto:
        """The ONNX model, with weights that keep the output's scale."""
        rng = np.random.default_rng(1)
        constants = {n: np.float32(value).reshape(()) for n, value in self.scalars.items()}
        constants |= {n: np.array([axis], np.int64) for n, axis in self.axes.items()}
        for name, shape in self.weights.items():
            values = rng.standard_normal(shape, dtype=np.float32)
            # A matrix sums over its rows, a convolution over all axes but the first.
            fan_in = shape[0] if len(shape) == 2 else math.prod(shape[1:])
            constants[name] = values / np.float32(math.sqrt(fan_in))
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [
                helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
                for n, s in self.inputs.items()
            ],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, self.output)],
            [numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8)
        onnx.checker.check_model(model)
        return model


def gemm(n: int) -> Kernel:
    """A square matrix product of two inputs."""
    inputs = {"a": (n, n), "b": (n, n)}
    return Kernel(f"gemm_{n}", inputs, (n, n)).add("MatMul", ("a", "b"))


def linear(m: int, k: int, n: int) -> Kernel:
    """A matrix product with constant weights."""
    kernel = Kernel(f"linear_{m}x{k}x{n}", {"x": (m, k)}, (m, n), weights={"w": (k, n)})
    return kernel.add("MatMul", ("x", "w"))


def conv(
    size: int, channels: int, filters: int, window: int, stride: int = 1, group: int = 1
) -> Kernel:
    """A convolution over `size` x `size` pixels that pads to keep the size (before striding)."""
    kind = f"depthwise{window}x{window}" if group > 1 else f"conv{window}x{window}"
    step = f"_s{stride}" if stride > 1 else ""
    out = (size - 1) // stride + 1
    kernel = Kernel(
        f"{kind}_{size}x{size}_{channels}to{filters}{step}",
        {"x": (1, channels, size, size)},
        (1, filters, out, out),
        weights={"w": (filters, channels // group, window, window)},
    )
    pads, strides = [window // 2] * 4, [stride, stride]
    return kernel.add("Conv", ("x", "w"), pads=pads, strides=strides, group=group)


def resnet50_convolutions() -> Iterator[Kernel]:
    """Each distinct convolution of ResNet-50 once."""
    yield conv(224, 3, 64, 7, stride=2)
    size, channels = 56, 64
    for stage, width in enumerate((64, 128, 256, 512)):
        stride = 1 if stage == 0 else 2
        yield conv(size, channels, width, 1)
        if stage > 0:
            yield conv(size, width, width, 3, stride=2)
        yield conv(size, channels, 4 * width, 1, stride=stride)
        size //= stride
        yield conv(size, width, width, 3)
        yield conv(size, 4 * width, width, 1)
        if stage > 0:  # in the first stage this one is the shortcut's
            yield conv(size, width, 4 * width, 1)
        channels = 4 * width


def softmax(*shape: int) -> Kernel:
    """A softmax over the last axis."""
    name = "softmax_" + "x".join(map(str, shape))
    return Kernel(name, {"x": shape}, shape).add("Softmax", ("x",), axis=-1)


def layernorm(rows: int, width: int) -> Kernel:
    """A layer norm over the last axis."""
    kernel = Kernel(f"layernorm_{rows}x{width}", {"x": (rows, width)}, (rows, width))
    kernel.weights = {"scale": (width,), "bias": (width,)}
    return kernel.add("LayerNormalization", ("x", "scale", "bias"), axis=-1, epsilon=1e-5)


def row_sums(rows: int, width: int) -> Kernel:
    """The sum of each row."""
    kernel = Kernel(f"rowsum_{rows}x{width}", {"x": (rows, width)}, (rows,))
    kernel.axes = {"last": 1}
    return kernel.add("ReduceSum", ("x", "last"), keepdims=0)


def products(batch: int, m: int, k: int) -> Kernel:
    """Products of small matrices, as attention has them: m x k by k x m."""
    inputs = {"a": (batch, m, k), "b": (batch, k, m)}
    return Kernel(f"bmm_{batch}x{m}x{k}", inputs, (batch, m, m)).add("MatMul", ("a", "b"))


def attention(sequence: int, heads: int = 12, width: int = 64) -> Kernel:
    """Attention of all heads, keys coming transposed."""
    query, key = (1, heads, sequence, width), (1, heads, width, sequence)
    kernel = Kernel(f"attention_{sequence}", {"q": query, "k": key, "v": query}, query)
    kernel.scalars = {"scale": width**-0.5}
    kernel.add("MatMul", ("q", "k"), "products").add("Mul", ("products", "scale"), "scaled")
    return kernel.add("Softmax", ("scaled",), "shares", axis=-1).add("MatMul", ("shares", "v"))


def mlp(batch: int, width: int, units: int) -> Kernel:
    """Two layers with a ReLU between them: so little work that the call itself counts."""
    kernel = Kernel(f"mlp_{batch}x{width}x{units}", {"x": (batch, width)}, (batch, units))
    kernel.weights = {"w": (width, units), "v": (units, units)}
    kernel.add("MatMul", ("x", "w"), "sums").add("Relu", ("sums",), "hidden")
    return kernel.add("MatMul", ("hidden", "v"))


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        gemm(512),
        gemm(1024),
        linear(128, 768, 3072),
        linear(128, 3072, 768),
        linear(1, 4096, 4096),
        *resnet50_convolutions(),
        conv(112, 96, 96, 3, group=96),
        softmax(128, 12, 128, 128),
        layernorm(128, 768),
        attention(128),
        attention(1024),
        mlp(1, 64, 64),
    )
}


# What tuners are compared on; ResNet-18's convolutions have their usual numbers.
TUNED: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        gemm(512),
        linear(128, 768, 3072),
        linear(1, 4096, 4096),
        conv(56, 64, 64, 3),  # C2
        conv(28, 128, 128, 3),  # C6
        conv(14, 256, 256, 3),  # C9
        conv(14, 256, 512, 1, stride=2),  # C11
        conv(112, 96, 96, 3, group=96),
        products(12, 128, 64),
        softmax(512, 1000),
        layernorm(512, 768),
        row_sums(4096, 4096),
    )
}
GROUPS = {"kernels": KERNELS, "tuned": TUNED}


def prepare(kernel: Kernel, out: Path) -> None:
    """Write model, inputs, what ONNX Runtime answers and what torch does in f64."""
    folder = out / kernel.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    onnx.save(kernel.model(), str(path))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = kernel.arrays()
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "expected.npz", y=session.run(["y"], inputs)[0])
    precise = torch_kernel(path).double()
    tensors = {name: torch.from_numpy(value).double() for name, value in inputs.items()}
    np.savez(folder / "reference.npz", y=precise(**tensors).numpy())


def main() -> None:
    """Prepare a group of kernels, or those of it that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="kernels (default: all)")
    parser.add_argument("--group", choices=GROUPS, default="kernels")
    parser.add_argument("--out", type=Path, help="default: the group's folder in the cache")
    parser.add_argument("--missing", action="store_true", help="only those not there yet")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    kernels = GROUPS[arguments.group]
    if arguments.list:
        print("\n".join(kernels))
        return
    unknown = [name for name in arguments.names if name not in kernels]
    if unknown:
        parser.error(f"unknown kernel {', '.join(unknown)}; there are {', '.join(kernels)}")
    out = arguments.out or CACHE / arguments.group
    for name in arguments.names or kernels:
        if arguments.missing and (out / name / "reference.npz").exists():
            continue
        prepare(kernels[name], out)
        print(name, flush=True)


if __name__ == "__main__":
    main()
