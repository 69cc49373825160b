"""Complex tensors as pairs: imported, interpreted, and compared with torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch.nn import functional as F

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random
from tilewright.compat.torch_backend import tilewright
from tilewright.core.errors import UnsupportedError


def numbers(*shape: int, seed: int = 0, dtype: torch.dtype = torch.complex64) -> torch.Tensor:
    return torch.complex(random(*shape, seed=seed), random(*shape, seed=seed + 100)).to(dtype)


Z, W = numbers(3, 5), numbers(3, 5, seed=1)
UNARY = ["exp", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "square", "neg"]
UNARY += ["sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh"]
UNARY += ["atanh", "sigmoid", "sgn", "abs", "angle", "conj", "conj_physical", "real", "imag"]
UNARY += ["expm1", "exp2", "positive", "isnan", "isinf", "isfinite", "logical_not", "isreal"]
UNARY += ["clone", "sum", "mean", "prod", "any", "all", "view_as_real", "is_complex", "var", "std"]
NOT_REAL = ("exp2", "is_complex")


@for_each("name", [n for n in UNARY if n not in NOT_REAL])
@for_each("dtype", [torch.complex64, torch.complex128], ids=str)
def test_functions(dtype: torch.dtype, name: str) -> None:
    check(getattr(torch, name), Z.to(dtype), rtol=2e-5, atol=1e-5)


def test_ones_on_a_diagonal_are_real() -> None:
    check(lambda a: (a @ torch.eye(5, dtype=a.dtype), torch.eye(2, 3, dtype=a.dtype)), Z)


BINARY: list[Callable[..., Any]] = [
    torch.add, torch.sub, torch.mul, torch.div, torch.eq, torch.ne, torch.pow, torch.vdot,
    torch.logical_and, lambda a, b: torch.add(a, b, alpha=2 - 1j), lambda a, b: a == a,
    lambda a, b: torch.rsub(a, b), lambda a, b: torch.addcmul(a, a, b), lambda a, b: a**2,
    lambda a, b: a**3, lambda a, b: a**0.5, lambda a, b: a**-1, lambda a, b: a ** (1 + 2j),
    lambda a, b: a * 2j + 1, lambda a, b: 3 - a, lambda a, b: 1 / a, lambda a, b: a * b.real,
    lambda a, b: b.real / a, lambda a, b: a + b.imag, lambda a, b: torch.where(a.real > 0, a, b),
    lambda a, b: torch.where(a.real > 0, a, b.real), lambda a, b: torch.cat([a, b.real, b]),
    lambda a, b: a.masked_fill(b.real > 0, 2 + 1j), lambda a, b: torch.stack([a, b], 1),
    lambda a, b: a.to(torch.complex128), lambda a, b: b.real.to(torch.complex64),
    lambda a, b: torch.complex(a.real, b.real), lambda a, b: torch.polar(a.abs(), b.angle()),
    lambda a, b: a.to(torch.bool), lambda a, b: torch.lerp(a, b, 0.3),
    lambda a, b: torch.outer(a, b),
]  # fmt: skip


@for_each("function", BINARY)
def test_two_operands(function: Callable[..., Any]) -> None:
    check(function, Z[0], W[1], rtol=1e-5, atol=1e-5)


MOVES: list[Callable[[torch.Tensor], Any]] = [
    lambda a: a.T, lambda a: a.reshape(5, 3), lambda a: a[:, 1:4], lambda a: a[:, ::2].flip(0),
    lambda a: F.pad(a, (1, 2), value=1.5), lambda a: a.expand(2, 3, 5), lambda a: a.repeat(2, 2),
    lambda a: a[torch.tensor([2, 0])], lambda a: torch.roll(a, 2, 1), lambda a: a.tril(),
    lambda a: a.sum(1), lambda a: a.mean(0, keepdim=True), lambda a: a.cumsum(1), lambda a: a.H,
    lambda a: a.prod(1), lambda a: a.prod(0), lambda a: a.split(2, 1),
    lambda a: a.gather(1, torch.tensor([[4, 0], [1, 1], [2, 3]])), lambda a: a.unbind(0),
    lambda a: torch.view_as_complex(torch.view_as_real(a) * 2), lambda a: torch.zeros_like(a),
    lambda a: torch.full((2,), 1 + 2j) * a[0, 0], lambda a: torch.ones_like(a) + a,
    lambda a: a.real,
    lambda a: torch.linalg.vector_norm(a), lambda a: torch.nn.functional.silu(a),
    lambda a: torch.select_scatter(a, a[0], 0, 2), lambda a: a[:0].prod(0), lambda a: a[:0] + 1,
    lambda a: a.mul(torch.tensor(3.0)), lambda a: a.eq(1),
    lambda a: a.index_put((a.real > 0,), a[0, 0]),
]  # fmt: skip


@for_each("index", range(len(MOVES)))
def test_moves_and_reductions(index: int) -> None:
    check(MOVES[index], Z, rtol=1e-5, atol=1e-5)


@pytest.fixture
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@pytest.mark.usefixtures("_fresh")
def test_compiled() -> None:
    def rotate(x: torch.Tensor, turns: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        turned = pairs * torch.polar(torch.ones_like(turns), turns)
        return torch.view_as_real(turned).flatten(-2), turned, turned.conj()

    made = torch.compile(rotate, backend=tilewright, fullgraph=True)
    given = random(2, 7, 10), random(7, 5, seed=3)
    for found, right in zip(made(*given), rotate(*given), strict=True):
        torch.testing.assert_close(found, right)
    square = torch.compile(lambda z: z * z, backend=tilewright, fullgraph=True)
    torch.testing.assert_close(square(Z.conj()), Z.conj() ** 2)
    assert square(Z[:0]).shape == (0, 5)


def test_what_has_no_rule() -> None:
    with pytest.raises(UnsupportedError, match="complex operands"):
        check(lambda a: torch.cumprod(a, 0), Z)
    with pytest.raises(UnsupportedError, match=r"torch\.complex32"):
        check(lambda a: a + 1, Z.to(torch.complex32))
