"""Random convolutional models over `[B, C, H, W]`: windows, residuals, concatenation, squeezes."""

from __future__ import annotations

import random

import numpy as np

from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import Shape, tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder

UNARY = ("relu", "sigmoid", "neg", "hard_swish")
SAME = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
POINT = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}


class RandomImageModel:
    """Grows a graph of images; convolutions keep the size of the image or halve it."""

    def __init__(self, seed: int, symbolic: bool) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.g = GraphBuilder(f"images{seed}")
        height = Var("H") if symbolic else self.rng.choice((4, 7))
        channels = self.rng.choice((3, 4, 8))
        self.values = [self.g.input("x", tensor(F32, 2, channels, height, 6))]

    def build(self, size: int) -> Graph:
        steps = (self.conv, self.conv, self.pointwise, self.depthwise, self.pool, self.unary)
        steps = (*steps, self.residual, self.joined, self.squeeze, self.affine, self.turned)
        for _ in range(size):
            self.values.append(self.rng.choice(steps)())
        last = self.add("reduce_mean", self.values[-1], axes=(2, 3), keepdims=False)
        return self.g.graph(last, self.rng.choice(self.values[1:]))

    def pick(self) -> str:
        return self.rng.choice(self.values[-3:] if self.rng.random() < 0.7 else self.values)

    def shape(self, name: str) -> Shape:
        return self.g.type(name).shape

    def channels(self, name: str) -> int:
        found = as_int(self.shape(name)[1])
        assert found is not None
        return found

    def add(self, op: str, *inputs: str, **values: object) -> str:
        return self.g.add(op, *inputs, attrs=make_attrs(op, values) if values else None)

    def weight(self, *shape: int) -> str:
        scale = 1 / max(1, int(np.prod(shape[1:]))) ** 0.5
        return self.g.constant((scale * self.data.standard_normal(shape)).astype(np.float32))

    def conv(self) -> str:
        x = self.pick()
        out = self.rng.choice((3, 4, 8))
        stride = self.rng.choice((1, 1, 2))
        attrs = {**SAME, "strides": (stride, 1)}
        y = self.add("conv", x, self.weight(out, self.channels(x), 3, 3), **attrs)
        return self.add("add", y, self.weight(out, 1, 1))

    def pointwise(self) -> str:
        x = self.pick()
        return self.add("conv", x, self.weight(4, self.channels(x), 1, 1), **POINT)

    def depthwise(self) -> str:
        x = self.pick()
        c = self.channels(x)
        return self.add("conv", x, self.weight(c, 1, 3, 3), **SAME, groups=c)

    def pool(self) -> str:
        op = self.rng.choice(("max_pool", "average_pool"))
        return self.add(op, self.pick(), kernel=(3, 3), **SAME)

    def unary(self) -> str:
        return self.add(self.rng.choice(UNARY), self.pick())

    def residual(self) -> str:
        x = self.pick()
        same = [v for v in self.values if self.shape(v) == self.shape(x)]
        return self.add(self.rng.choice(("add", "mul", "max")), x, self.rng.choice(same))

    def joined(self) -> str:
        x = self.pick()
        pixels = self.shape(x)[2:]
        fitting = [v for v in self.values if self.shape(v)[2:] == pixels]
        return self.add("concat", x, self.rng.choice(fitting), axis=1)

    def squeeze(self) -> str:
        """Channels weighted by what the whole image says."""
        x = self.pick()
        c = self.channels(x)
        mean = self.add("reduce_mean", x, axes=(2, 3), keepdims=True)
        return self.add(
            "mul", x, self.add("sigmoid", self.add("conv", mean, self.weight(c, c, 1, 1), **POINT))
        )

    def affine(self) -> str:
        x = self.pick()
        c = self.channels(x)
        return self.add("add", self.add("mul", x, self.weight(c, 1, 1)), self.weight(1, c, 1, 1))

    def turned(self) -> str:
        x = self.pick()
        flipped = self.add(self.rng.choice(UNARY), self.add("transpose", x, perm=(0, 1, 3, 2)))
        return self.add("transpose", flipped, perm=(0, 1, 3, 2))


def random_image_model(seed: int, size: int = 10, symbolic: bool = False) -> Graph:
    """A random model; with `symbolic`, the height H is not known."""
    return RandomImageModel(seed, symbolic).build(size)
