from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, imported, integers, ops, random
from tilewright.core.errors import ExecutionError
from tilewright.ops.interpret import run_graph

X = torch.cat([random(3, 5), torch.tensor([[0.0, -0.0, 1e-7, -1e-7, 30.0]])])
EDGES = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, 1.0, -1.0, 2.5, -2.5])

UNARY = ["abs", "neg", "exp", "reciprocal", "sign", "erf", "sin", "cos", "tan", "atan", "sinh"]
UNARY += ["cosh", "tanh", "asinh", "sigmoid", "relu", "floor", "ceil", "round", "trunc", "frac"]
UNARY += ["exp2", "expm1", "square", "positive", "sgn"]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "rsqrt"]
WITHIN = ["asin", "acos", "atanh"]


@for_each("name", UNARY)
def test_unary(name: str) -> None:
    check(getattr(torch, name), X, rtol=1e-5)


@for_each("decimals", [1, 3, -2, 40])
@for_each("dtype", [torch.float32, torch.float16], ids=str)
def test_round_to_decimals(dtype: torch.dtype, decimals: int) -> None:
    ties = torch.tensor([0.05, 0.15, 0.25, 2.5, 149.99, 150.0, 250.0, -0.0, torch.inf, torch.nan])
    x = torch.cat([random(20) * 300, ties]).to(dtype)
    check(lambda a: torch.round(a, decimals=decimals), x, rtol=0, atol=0)


@for_each("name", POSITIVE)
def test_on_positive_numbers(name: str) -> None:
    check(getattr(torch, name), X.abs() + 1e-6)


@for_each("name", WITHIN)
def test_within_one(name: str) -> None:
    check(getattr(torch, name), X.clamp(-0.99, 0.99))


@for_each("name", ["relu", "trunc", "log1p", "expm1", "sigmoid", "sign", "floor"])
def test_edges(name: str) -> None:
    check(getattr(torch, name), EDGES)


@for_each("name", ["abs", "neg", "sign", "floor", "ceil", "trunc", "exp", "sqrt"])
def test_on_integers(name: str) -> None:
    check(getattr(torch, name), integers(0, 9, 7, dtype=torch.int32))


ACTIVATIONS: list[Callable[..., torch.Tensor]] = [
    F.silu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.mish, F.hardswish, F.hardsigmoid,
    F.leaky_relu, F.elu, F.selu, F.celu, lambda x: F.elu(x, 0.5), F.softplus, F.softsign, F.relu6,
    lambda x: F.softplus(x, 2.0, 5.0), F.hardtanh, F.tanhshrink, F.logsigmoid, F.hardshrink,
    lambda x: F.threshold(x, 0.1, 20.0), F.glu,
]  # fmt: skip


@for_each("number", range(len(ACTIVATIONS)))
def test_activations(number: int) -> None:
    check(ACTIVATIONS[number], random(4, 6) * 3)


@for_each("name", ["silu", "gelu", "hardswish", "mish"])
def test_an_activation_is_one_operator(name: str) -> None:
    assert len(imported(getattr(F, name), X).nodes) == 1


def test_prelu() -> None:
    check(torch.nn.PReLU(4), random(2, 4, 3))
    check(torch.nn.PReLU(), random(2, 4))


BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "floor_divide"]


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    a, b = random(4, 1, 5), random(3, 5, seed=2) + 3
    check(getattr(torch, name), a, b)
    check(getattr(torch, name), integers(-9, 9, 5), integers(1, 5, 5))
    check(getattr(torch, name), integers(-9, 9, 5), b)
    check(lambda x: getattr(torch, name)(x, torch.tensor(3)), a)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_division(mode: str | None) -> None:
    numbers = integers(-9, 9, 20)
    check(lambda a, b: torch.div(a, b, rounding_mode=mode), numbers, integers(1, 4, 20))
    check(lambda a: torch.div(a, -2.5, rounding_mode=mode), random(7) * 9)


def test_scalars_and_factors() -> None:
    check(lambda x: 2 - x, X)
    check(lambda x: torch.rsub(x, 3, alpha=2), X)
    check(lambda x, y: torch.add(x, y, alpha=0.5), X, X + 1)
    check(lambda x: x + True, integers(0, 5, 4))
    check(lambda x: x * 2.5, integers(0, 5, 4))


def test_truth_values_add_and_multiply() -> None:
    a = torch.tensor([True, False, True, False])
    b = torch.tensor([True, True, False, False])
    check(lambda a, b: (a + b, a * b, torch.maximum(a, b)), a, b)


def test_powers() -> None:
    assert ops(check(lambda x: x**2, X)) == ["mul"]
    check(lambda x: x.abs() ** 0.5, X)
    check(lambda x: x**3, X)
    check(lambda x: 2.0**x, random(5))
    check(lambda x, y: x.abs() ** y, random(5), random(5))


def test_angles() -> None:
    signs = [(y, x) for y in (-1.5, 0.0, 2.0) for x in (-3.0, 0.0, 0.5)]
    y, x = (torch.tensor(list(column)) for column in zip(*signs, strict=True))
    check(torch.atan2, y, x)
    check(torch.atan2, EDGES[:, None], EDGES)


def test_clamps() -> None:
    check(lambda x: x.clamp(-0.5, 0.5), X)
    check(lambda x: x.clamp(min=0.1), X)
    check(lambda x: x.clamp(max=0.1), X)
    check(lambda x, a: torch.clamp(x, a, a + 1), X, X - 0.5)
    check(lambda x: x.clamp(0, 3), integers(-9, 9, 6))


@for_each("to", [torch.float64, torch.int32, torch.bool, torch.float16, torch.uint8])
def test_casts(to: torch.dtype) -> None:
    check(lambda x: x.to(to), torch.tensor([0.0, 1.6, 2.5, 100.0]))


def test_copies_cost_nothing() -> None:
    graph = check(lambda x: x.clone().contiguous().detach() + 1, X)
    assert ops(graph) == ["add"]


def test_nothing_at_all() -> None:
    check(torch.relu, random(0, 3))
    check(lambda x: x, X)


@for_each("op", ["fmod", "remainder", "floor_divide"])
def test_integers_are_not_divided_by_zero(op: str) -> None:
    x, wrong = torch.tensor([7, -7, 5]), torch.tensor([1, 0, 2])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, op)(x, wrong)
    graph = imported(getattr(torch, op), x, torch.ones(3, dtype=torch.int64))
    with pytest.raises(ExecutionError, match="integer division by zero"):
        run_graph(graph, {v.name: t.numpy() for v, t in zip(graph.inputs, (x, wrong), strict=True)})
