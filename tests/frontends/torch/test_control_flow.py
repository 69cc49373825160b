from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._higher_order_ops import scan
from torch._higher_order_ops.while_loop import while_loop

import tilewright as tw
from tests.frontends.torch.eager import ops, random
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.capture import import_torch
from tilewright.ops.interpret import run_graph


class Module(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def compare(function: Callable[..., Any], *cases: tuple[torch.Tensor, ...]) -> list[str]:
    """The operators of a function that gives what torch gives, interpreted and compiled."""
    module = Module(function).eval()
    graph = import_torch(module, cases[0])
    model = tw.compile(module, inputs=cases[0])
    for case in cases:
        given = {v.name: to_array(x) for v, x in zip(graph.inputs, case, strict=True)}
        interpreted = run_graph(graph, given)
        results = module(*case)
        results = results if isinstance(results, tuple | list) else (results,)
        compiled = model(*case)
        compiled = compiled if isinstance(compiled, tuple | list) else (compiled,)
        for name, ours, theirs in zip(graph.outputs, compiled, results, strict=True):
            np.testing.assert_allclose(interpreted[name], theirs.numpy(), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=1e-5, atol=1e-6)
    return ops(graph)


def test_one_of_two_functions() -> None:
    weight = random(3, 3, seed=7)

    def chosen(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x, y: x @ weight + y, lambda x, y: x * 2, (x, y))

    x, y = random(4, 3).abs(), random(4, 3, seed=1)
    found = compare(chosen, (x, y), (-x, y), (torch.full_like(x, torch.nan), y))
    assert "if" in found


def test_a_condition_in_a_condition_and_results_that_are_arguments() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.max() > 2, lambda x: x.exp(), lambda x: x - 1, (x,))

    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.min() > 0, inner, lambda x: x.clone(), (x,))

    x = random(5).abs() + 0.1
    compare(chosen, (x,), (x + 3,), (-x,))


def test_a_function_run_while_another_says_so() -> None:
    def goes_on(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (i < 5) & (x.abs().max() < 100)

    def step(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return i + 1, x * 3 + 1

    def repeated(x: torch.Tensor) -> Any:
        return while_loop(goes_on, step, (torch.tensor(0), x))

    x = random(2, 3)
    assert "loop" in compare(repeated, (x,), (x * 20,), (x * 1000,))


def test_a_scan_over_rows() -> None:
    def step(h: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        after = torch.tanh(h.flip(0) * 0.5 + x)
        return after, after * 2

    def recurrence(h: torch.Tensor, xs: torch.Tensor) -> Any:
        return scan(step, h, xs)

    assert "loop" in compare(recurrence, (random(2, 3), random(7, 2, 3, seed=2)))


def test_a_function_of_each_row() -> None:
    def rows(xs: torch.Tensor, y: torch.Tensor) -> Any:
        from torch._higher_order_ops.map import map as map_rows

        return map_rows(lambda x, y: x.sum() * y, xs, y)

    assert "loop" in compare(rows, (random(4, 3), random(2, seed=3)))


def test_random_numbers_inside_are_refused() -> None:
    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + torch.rand(3), lambda x: x * 2, (x,))

    with pytest.raises(UnsupportedError, match="random numbers are drawn in a function"):
        import_torch(Module(chosen).eval(), (random(3),))


def test_with_torch_compile() -> None:
    @torch.compile(backend="tilewright", fullgraph=True)
    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    x = random(6).abs()
    with torch.no_grad():
        torch.testing.assert_close(chosen(x), x.sin())
        torch.testing.assert_close(chosen(-x), (-x).cos())
