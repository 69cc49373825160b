from __future__ import annotations

import torch

from tests.frontends.torch.eager import check, imported, ops, random


def test_each_is_one_operator() -> None:
    x = random(2, 4, 4)
    assert ops(imported(torch.linalg.lu_factor_ex, x)) == ["lu"]
    assert ops(imported(torch.linalg.cholesky_ex, x)) == ["cholesky"]
    solve = torch.linalg.solve_triangular
    graph = imported(lambda a, b: solve(a, b, upper=False), x, random(2, 4, 3))
    assert ops(graph) == ["solve_triangular"]


def test_rows_where_they_came_from() -> None:
    def permutation(x: torch.Tensor) -> torch.Tensor:
        return torch.lu_unpack(*torch.linalg.lu_factor_ex(x)[:2], unpack_data=False)[0]

    check(permutation, random(3, 5, 5))
    check(permutation, random(5, 3))
    check(permutation, random(3, 5))
