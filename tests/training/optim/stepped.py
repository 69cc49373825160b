"""Steps of our optimizers, interpreted, beside torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tilewright.arith.expr import const
from tilewright.core.dtypes import F64
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.traced_value import Value
from tilewright.training.optim.optimizer import Optimizer

SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (5,), (), (2, 3, 4))


def steps(optimizer: Optimizer, p: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    """A parameter after steps by given gradients, in f64."""
    t = TensorType(F64, tuple(map(const, p.shape)))
    state = {n: np.zeros([int(str(d)) for d in s.shape]) for n, s in optimizer.state(t).items()}
    for i, slope in enumerate(slopes, 1):
        numbers = optimizer.numbers(i)
        g = GraphBuilder("step")
        given = {n: g.input(n, t) for n in ("p", "dp")}
        own = {n: g.input(n, kind) for n, kind in optimizer.state(t).items()}
        scalars = [g.input(f"n{k}", TensorType(F64, ())) for k in range(len(numbers))]
        new, after = optimizer.update(
            *(Value(g, given[n]) for n in ("p", "dp")),
            {n: Value(g, name) for n, name in own.items()},
            [Value(g, s) for s in scalars],
        )
        assert after.keys() == state.keys()
        feeds = {"p": p, "dp": slope, **state}
        feeds |= {f"n{k}": np.float64(v) for k, v in enumerate(numbers)}
        names = [new.name, *(after[n].name for n in state)]
        found = run_graph(g.graph(*names), feeds)
        p, state = found[names[0]], dict(zip(state, (found[n] for n in names[1:]), strict=True))
    return p


def check(optimizer: Optimizer, theirs: Callable[..., torch.optim.Optimizer]) -> None:
    """Compare five steps of parameters of several shapes with an optimizer of torch's."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        p = rng.normal(size=shape)
        slopes = [rng.normal(size=shape) for _ in range(5)]
        leaf = torch.tensor(p, requires_grad=True)
        other: Any = theirs([leaf])
        for slope in slopes:
            leaf.grad = torch.tensor(slope)
            other.step()
        np.testing.assert_allclose(
            steps(optimizer, p, slopes), leaf.detach().numpy(), rtol=1e-9, atol=1e-11
        )
