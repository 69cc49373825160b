"""Transformers of different depth but equal layers: what compiling more of the same costs.

    python benchmarks/depth.py                          # encoder_12 and encoder_96, into the cache
    python benchmarks/compile_cost.py depth

Every layer has weights of its own, so that only the code is the same, never the data.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OUT = Path(__file__).parent / "results" / "cache" / "depth"
DEPTHS = (12, 96)
SEQUENCE, WIDTH, HEADS, OPSET = 64, 128, 4, 20


class Encoder:
    """An encoder as it is written down, layer by layer."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, *shape: int) -> str:
        """A new weight."""
        data = self.rng.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[0])
        return self.constant(data.astype(np.float32))

    def constant(self, data: np.ndarray) -> str:
        """A new constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(data, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """A node with one output; its name."""
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def linear(self, x: str, into: int, out: int) -> str:
        """A matrix product and a bias."""
        return self.add("Add", self.add("MatMul", x, self.weight(into, out)), self.weight(out))

    def heads(self, x: str, perm: tuple[int, ...]) -> str:
        """The features of each head apart."""
        shape = self.constant(np.array([SEQUENCE, HEADS, WIDTH // HEADS]))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=perm)

    def layer(self, x: str) -> str:
        """Attention and two linear layers, each with a norm."""
        q, k, v = (self.linear(x, WIDTH, WIDTH) for _ in range(3))
        products = self.add("MatMul", self.heads(q, (1, 0, 2)), self.heads(k, (1, 2, 0)))
        scale = self.constant(np.float32((WIDTH // HEADS) ** -0.5).reshape(()))
        shares = self.add("Softmax", self.add("Mul", products, scale), axis=-1)
        mixed = self.add("MatMul", shares, self.heads(v, (1, 0, 2)))
        flat = self.constant(np.array([SEQUENCE, WIDTH]))
        joined = self.add("Reshape", self.add("Transpose", mixed, perm=(1, 0, 2)), flat)
        x = self.norm(self.add("Add", x, self.linear(joined, WIDTH, WIDTH)))
        inner = self.add("Gelu", self.linear(x, WIDTH, 4 * WIDTH))
        return self.norm(self.add("Add", x, self.linear(inner, 4 * WIDTH, WIDTH)))

    def norm(self, x: str) -> str:
        """A layer norm."""
        return self.add("LayerNormalization", x, self.weight(WIDTH), self.weight(WIDTH))


def encoder(depth: int) -> onnx.ModelProto:
    """A model of `depth` layers."""
    model, x = Encoder(), "x"
    for _ in range(depth):
        x = model.layer(x)
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (SEQUENCE, WIDTH))
        for name in ("x", x)
    ]
    graph = helper.make_graph(model.nodes, "encoder", ports[:1], ports[1:], model.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def main() -> None:
    """Write the models."""
    for depth in DEPTHS:
        folder = OUT / f"encoder_{depth}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(encoder(depth), str(folder / "model.onnx"))
        print(folder.name)


if __name__ == "__main__":
    main()
