"""Determinants, inverses and solutions of equations, by LU and Cholesky factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_ATEN = torch.ops.aten


def _solved(a: Tensor, b: Tensor, *, upper: bool, unit: bool = False) -> Tensor:
    found: Tensor = _ATEN.linalg_solve_triangular(a, b, upper=upper, unitriangular=unit)
    return found


def lu_unpack(
    data: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """Permutation, lower and upper triangle; the permutation alone is an operator of ours."""
    if not unpack_data:
        return NotImplemented
    count = min(data.shape[-2:])
    lower = data[..., :count].tril(-1)
    lower = lower + torch.eye(*lower.shape[-2:], dtype=data.dtype, device=data.device)
    upper = data[..., :count, :].triu()
    if not unpack_pivots:
        return data.new_empty([0]), lower, upper
    return _ATEN.lu_unpack(data, pivots, False, True)[0], lower, upper


def lu(a: Tensor, *, pivot: bool = True) -> Any:
    """The factors of a matrix."""
    data, pivots, _ = _ATEN.linalg_lu_factor_ex(a, pivot=pivot)
    return lu_unpack(data, pivots, True, pivot)


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in another order."""
    return x.gather(-2, order.unsqueeze(-1).expand(x.shape))


def lu_solve(
    data: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Solutions of A X = B, of the transposed A or from the right."""
    if not left:
        return lu_solve(data, pivots, b.mT, adjoint=not adjoint).mT
    batch = torch.broadcast_shapes(data.shape[:-2], b.shape[:-2])
    b = b.expand([*batch, *b.shape[-2:]])
    # of rows by where they came from, and back
    permutation = _ATEN.lu_unpack(data, pivots, False, True)[0].expand([*batch, *data.shape[-2:]])
    if b.numel() == 0:
        return b.clone()
    if not adjoint:
        b = _rows(b, permutation.argmax(-2))
        return _solved(data, _solved(data, b, upper=False, unit=True), upper=True)
    found = _solved(data.mT, _solved(data.mT, b, upper=False), upper=True, unit=True)
    return _rows(found, permutation.argmax(-1))


def solve(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Solutions of A X = B, where B may be one vector; the factors, and whether a pivot is 0."""
    if check_errors:
        return NotImplemented
    data, pivots, info = _ATEN.linalg_lu_factor_ex(a)
    is_vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    found = lu_solve(data, pivots, b.unsqueeze(-1) if is_vector else b, left=left)
    return found.squeeze(-1) if is_vector else found, data, pivots, info


def inverse(a: Tensor, *, check_errors: bool = False) -> Any:
    """Inverses, and whether a pivot is 0."""
    if check_errors:
        return NotImplemented
    unit = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    found, _, _, info = solve(a, unit)
    return found, info


def _sign(pivots: Tensor, like: Tensor) -> Tensor:
    """Minus one to the power of how many rows were exchanged."""
    steps = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return torch.where(pivots == steps, 1, -1).to(like.dtype).prod(-1)


def determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Determinants, and the factors."""
    data, pivots, _ = _ATEN.linalg_lu_factor_ex(a)
    diagonal = data.diagonal(dim1=-2, dim2=-1)
    return diagonal.prod(-1) * _sign(pivots, a), data, pivots


def log_determinant(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Signs and logarithms of determinants, and the factors."""
    data, pivots, _ = _ATEN.linalg_lu_factor_ex(a)
    diagonal = data.diagonal(dim1=-2, dim2=-1)
    sign = diagonal.sign().prod(-1) * _sign(pivots, a)
    return sign, diagonal.abs().log().sum(-1), data, pivots


def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    """The factor of positive definite matrices."""
    found: Tensor = _ATEN.linalg_cholesky_ex(a, upper=upper)[0]
    return found


def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """Solutions of A X = B by the factor of A."""
    lower = factor.mT if upper else factor
    return _solved(lower.mT, _solved(lower, b, upper=False), upper=True)


def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    """Inverses by factors."""
    unit = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return cholesky_solve(unit, factor, upper)


def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """Solutions of a triangle of equations, and the triangle."""
    given = a.mT if transpose else a
    found = _solved(given, b, upper=upper != transpose, unit=unitriangular)
    batch = found.shape[:-2]
    return found, a.expand([*batch, *a.shape[-2:]]).clone()


DECOMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten.lu_unpack.default": lu_unpack,
    "aten.linalg_lu.default": lu,
    "aten.linalg_lu_solve.default": lu_solve,
    "aten._linalg_solve_ex.default": solve,
    "aten.linalg_inv_ex.default": inverse,
    "aten._linalg_det.default": determinant,
    "aten._linalg_slogdet.default": log_determinant,
    "aten.cholesky.default": cholesky,
    "aten.cholesky_solve.default": cholesky_solve,
    "aten.cholesky_inverse.default": cholesky_inverse,
    "aten.triangular_solve.default": triangular_solve,
}
