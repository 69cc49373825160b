"""Complex functions where formulas are delicate."""

from __future__ import annotations

import torch

from tests.for_each import for_each
from tests.frontends.torch.eager import check

# On and beside the branch cuts, and what overflows where it is squared.
CORNERS = torch.tensor([0, 1, -1, 1j, -1j, 0.5, -0.5, 2, -2, 2j, -2j, 1e25 + 1e25j, 1e-25 - 1e-25j])


@for_each("name", ["sqrt", "log", "abs", "angle", "sgn", "conj", "asin", "acos", "asinh", "acosh"])
def test_corners(name: str) -> None:
    # torch itself is not exact for numbers whose squares overflow
    corners = CORNERS[:-2] if name in ("asin", "acos", "asinh", "acosh") else CORNERS
    check(getattr(torch, name), corners.to(torch.complex128), rtol=1e-9, atol=1e-12)


def test_tanh_far_out() -> None:
    check(torch.tanh, torch.tensor([50 + 1j, -90 + 2j, 12 + 0.3j, 300j]), rtol=1e-4, atol=1e-5)
