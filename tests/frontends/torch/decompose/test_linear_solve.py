from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check, random

SHAPES = ((3, 3), (2, 5, 5), (0, 0), (2, 0, 0), (0, 3, 3))


def square(*shape: int) -> torch.Tensor:
    return random(*shape).to(torch.float64) + 2 * torch.eye(shape[-1])


@for_each("shape", SHAPES)
def test_determinants_and_inverses(shape: tuple[int, ...]) -> None:
    x = square(*shape)
    check(lambda x: (torch.det(x), *torch.slogdet(x), torch.logdet(x @ x.mT)), x, rtol=1e-8)
    check(lambda x: tuple(torch.linalg.inv_ex(x)), x, rtol=1e-8)


def test_singular_matrices() -> None:
    x = torch.stack([torch.ones(3, 3), torch.zeros(3, 3), torch.eye(3)])
    check(lambda x: (torch.det(x), *torch.slogdet(x), torch.linalg.lu_factor_ex(x)[2]), x)


@for_each("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (0, 3)])
def test_factors(shape: tuple[int, ...]) -> None:
    x = random(*shape)
    check(lambda x: (*torch.linalg.lu(x), *torch.linalg.lu_factor_ex(x)), x, rtol=1e-4, atol=1e-5)


def test_solutions() -> None:
    a, b = square(2, 4, 4), random(2, 4, 3).to(torch.float64)
    check(lambda a, b: tuple(torch.linalg.solve_ex(a, b)), a, b, rtol=1e-8)
    check(lambda a, b: torch.linalg.solve_ex(a, b.mT, left=False)[0], a, b, rtol=1e-8)
    check(lambda a, b: torch.linalg.solve_ex(a, b)[0], a, b[:, :, 0], rtol=1e-8)
    check(lambda a, b: torch.linalg.solve_ex(a, b)[0], a[0], b, rtol=1e-8)


@for_each("adjoint", [False, True])
def test_solutions_by_factors(adjoint: bool) -> None:
    a, b = square(2, 4, 4), random(3, 1, 4, 3).to(torch.float64)

    def both(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        data, pivots, _ = torch.linalg.lu_factor_ex(a)
        left = torch.linalg.lu_solve(data, pivots, b, adjoint=adjoint)
        return left, torch.linalg.lu_solve(data, pivots, b.mT, left=False, adjoint=adjoint)

    check(both, a, b, rtol=1e-8)


@for_each("upper", [False, True])
def test_positive_definite(upper: bool) -> None:
    x, b = square(2, 4, 4), random(4, 3).to(torch.float64)
    x = x @ x.mT
    check(lambda x: (*torch.linalg.cholesky_ex(x, upper=upper), torch.cholesky(x, upper)), x)

    def solved(x: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        factor = torch.linalg.cholesky_ex(x, upper=upper)[0]
        return torch.cholesky_solve(b, factor, upper), torch.cholesky_inverse(factor, upper)

    check(solved, x, b, rtol=1e-8)


@for_each("upper", [False, True])
def test_triangles(upper: bool) -> None:
    a, b = square(2, 4, 4), random(2, 4, 3).to(torch.float64)
    solve = torch.linalg.solve_triangular
    check(lambda a, b: solve(a, b, upper=upper), a, b, rtol=1e-8)
    check(lambda a, b: solve(a[:1], b[0], upper=upper, unitriangular=True), a, b, rtol=1e-8)
    check(lambda a, b: solve(a, b.mT, upper=upper, left=False), a, b, rtol=1e-8)
    for transpose in (False, True):
        check(lambda a, b, t=transpose: torch.triangular_solve(b, a, upper, t), a, b, rtol=1e-8)
