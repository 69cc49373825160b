"""Small ONNX models for tests that need a whole model, their weights seeded.

model = mlp("N")                       # a symbolic batch; mlp(4) has a fixed one
path = save(model, folder / "m.onnx")
inputs = random_inputs(model, {"N": 3})
expected = reference(model, inputs)    # what ONNX's own evaluator says, by output name
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Dim = int | str
OPSET = 17


class _Builder:
    """Collects nodes and weights; `add` names the results."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int, scale: float = 0.3) -> str:
        """A weight of small random numbers."""
        return self.constant(name, (scale * self.rng.standard_normal(shape)).astype(np.float32))

    def constant(self, name: str, data: np.ndarray) -> str:
        """A weight with this content."""
        self.weights.append(numpy_helper.from_array(data, name))
        return name

    def add(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """A node with one output; its name."""
        out = out or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def model(
        self, inputs: Mapping[str, Sequence[Dim]], outputs: Mapping[str, Sequence[Dim]]
    ) -> onnx.ModelProto:
        """The checked model; all inputs and outputs are f32."""
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            self.weights,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 10
        onnx.checker.check_model(model)
        return model


def mlp(batch: Dim = 2, features: int = 16, hidden: int = 32, classes: int = 5) -> onnx.ModelProto:
    """Two dense layers with a ReLU between and a softmax at the end: x -> probabilities."""
    b = _Builder("mlp")
    h = b.add("Gemm", "x", b.weight("w1", features, hidden), b.weight("b1", hidden))
    h = b.add("Relu", h)
    h = b.add("Gemm", h, b.weight("w2", hidden, classes), b.weight("b2", classes))
    b.add("Softmax", h, out="probabilities", axis=-1)
    return b.model({"x": (batch, features)}, {"probabilities": (batch, classes)})


def convnet(batch: Dim = 1, size: int = 8, channels: int = 8) -> onnx.ModelProto:
    """Convolution, batch normalisation, a residual block, pooling and a dense layer."""
    b = _Builder("convnet")

    def conv(x: str, name: str, inputs: int, kernel: int) -> str:
        w = b.weight(f"{name}.w", channels, inputs, kernel, kernel)
        x = b.add("Conv", x, w, pads=[kernel // 2] * 4, kernel_shape=[kernel, kernel])
        names = [b.weight(f"{name}.{part}", channels) for part in ("scale", "bias", "mean")]
        variance = np.abs(b.rng.standard_normal(channels)).astype(np.float32) + 0.5
        return b.add("BatchNormalization", x, *names, b.constant(f"{name}.var", variance))

    stem = b.add("Relu", conv("image", "stem", 3, 3))
    stem = b.add("MaxPool", stem, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("Relu", conv(stem, "a", channels, 3))
    x = b.add("Relu", b.add("Add", conv(x, "b", channels, 1), stem))
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    b.add("Gemm", x, b.weight("head", channels, 4), b.weight("head.b", 4), out="logits")
    return b.model({"image": (batch, 3, size, size)}, {"logits": (batch, 4)})


def transformer(
    batch: Dim = 1, length: Dim = 6, width: int = 16, heads: int = 2
) -> onnx.ModelProto:
    """One encoder block: self-attention and a feed-forward layer, each added and normalised."""
    b = _Builder("transformer")

    def dense(x: str, name: str, rows: int, columns: int) -> str:
        x = b.add("MatMul", x, b.weight(f"{name}.w", rows, columns))
        return b.add("Add", x, b.weight(f"{name}.b", columns))

    def norm(x: str, name: str, out: str = "") -> str:
        scale, bias = b.weight(f"{name}.g", width), b.weight(f"{name}.b", width)
        return b.add("LayerNormalization", x, scale, bias, out=out)

    split = b.constant("split", np.array([0, 0, heads, width // heads]))
    join = b.constant("join", np.array([0, 0, width]))

    def head(x: str, name: str, order: Sequence[int]) -> str:
        return b.add("Transpose", b.add("Reshape", dense(x, name, width, width), split), perm=order)

    q, k, v = (
        head("x", name, order)
        for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3)))
    )
    scale = b.constant("scale", np.float32((width // heads) ** -0.5).reshape(()))
    scores = b.add("Softmax", b.add("Mul", b.add("MatMul", q, k), scale), axis=-1)
    x = b.add("Transpose", b.add("MatMul", scores, v), perm=(0, 2, 1, 3))
    x = norm(b.add("Add", dense(b.add("Reshape", x, join), "out", width, width), "x"), "norm1")
    inner = b.add("Relu", dense(x, "up", width, 2 * width))
    norm(b.add("Add", dense(inner, "down", 2 * width, width), x), "norm2", out="y")
    return b.model({"x": (batch, length, width)}, {"y": (batch, length, width)})


def one_node(
    op: str, shape: Sequence[Dim] = (2, 3), *, domain: str = "", **attributes: Any
) -> onnx.ModelProto:
    """`y = op(x)`, unchecked: also for operators that do not exist."""
    node = helper.make_node(op, ["x"], ["y"], name=f"the_{op.lower()}", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one_node",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    imports = [
        helper.make_opsetid("", OPSET),
        *([helper.make_opsetid(domain, 1)] if domain else []),
    ]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def save(model: onnx.ModelProto, path: Path) -> Path:
    """Write a model; its path."""
    path.write_bytes(model.SerializeToString())
    return path


def save_external(model: onnx.ModelProto, path: Path, location: str = "weights.bin") -> Path:
    """Write a model with all its weights in the file `location` beside it."""
    onnx.save_model(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path


def random_inputs(
    model: onnx.ModelProto, dims: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Normally distributed f32 inputs by name; `dims` gives symbolic sizes a value."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for value in model.graph.input:
        shape = [
            d.dim_value if d.HasField("dim_value") else (dims or {})[d.dim_param]
            for d in value.type.tensor_type.shape.dim
        ]
        inputs[value.name] = rng.standard_normal(shape).astype(np.float32)
    return inputs


def reference(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX's own evaluator answers, by output name."""
    names = [o.name for o in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model).run(names, dict(inputs)), strict=True))
