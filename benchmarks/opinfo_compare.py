"""Results of samples of OpInfo beside eager's, by torch's tolerances; random ones by the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.testing._comparison import default_tolerances

ANY_OF_EQUALS = {"kthvalue", "topk"}
"""Operators that also say where elements are, of equal ones any: torch promises no order."""

FARTHER = 1.5
"""Results whose largest error is so many times eager's are as exact as those."""


def differences(
    found: Sequence[Any], right: Sequence[Any], allowed: tuple[float, float] = (0.0, 0.0)
) -> str:
    """What is different between results, empty where nothing is.

    Each may differ by torch's own tolerances of its type, or by what is `allowed` if that is more.
    """
    if len(found) != len(right):
        return f"{len(found)} results for {len(right)}"
    for number, (ours, theirs) in enumerate(zip(found, right, strict=True)):
        usual = default_tolerances(theirs) if isinstance(theirs, torch.Tensor) else (0.0, 0.0)
        rtol, atol = (max(pair) for pair in zip(usual, allowed, strict=True))
        try:
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
        except (AssertionError, ValueError, TypeError) as error:
            return f"result {number}: {' '.join(str(error).split())}"
    return ""


def is_as_exact(found: Sequence[Any], right: Sequence[Any], exact: Sequence[Any]) -> bool:
    """Whether no float is much farther off those of `exact`, in f64, than the worst of `right`."""
    if not len(found) == len(right) == len(exact):
        return False
    for ours, theirs, wide in zip(found, right, exact, strict=True):
        if not (ours.is_floating_point() or ours.is_complex()):
            if not is_same([ours], [theirs]):
                return False
            continue
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype) or wide.shape != ours.shape:
            return False
        is_number = torch.isfinite(theirs)
        if not torch.equal(is_number, torch.isfinite(ours)) or not is_number.any():
            return False
        off, usual = ((t.to(wide.dtype) - wide).abs()[is_number].max() for t in (ours, theirs))
        if not off <= FARTHER * usual:
            return False
    return True


def pointed_at(sample: Any, results: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Results of `topk` or `kthvalue`, the elements in place of where these are."""
    values, places = results[:2]
    x = sample.input if sample.input.ndim else sample.input[None]
    dim = {**dict(zip(("k", "dim"), sample.args, strict=False)), **sample.kwargs}.get("dim", -1)
    if places.ndim < x.ndim:
        places = places.unsqueeze(dim)
    return [values, x.gather(dim, places), *results[2:]]


def is_same(found: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether results are equal to the last bit."""
    try:
        torch.testing.assert_close(found, right, rtol=0, atol=0, equal_nan=True)
    except (AssertionError, ValueError, TypeError):
        return False
    return True


def unlike(found: list[Any], right: list[Any]) -> str:
    """What tells apart the distributions of results that were drawn several times, if anything."""
    for ours, theirs in zip(zip(*found, strict=True), zip(*right, strict=True), strict=True):
        if (ours[0].shape, ours[0].dtype) != (theirs[0].shape, theirs[0].dtype):
            return f"{ours[0].shape} of {ours[0].dtype} for {theirs[0].shape} of {theirs[0].dtype}"
        a, b = (torch.stack(list(x)).to(torch.float64).flatten() for x in (ours, theirs))
        if not a.numel():
            continue
        spread = math.sqrt((a.var(correction=0).item() + b.var(correction=0).item()) / a.numel())
        apart = abs(a.mean().item() - b.mean().item())
        if not apart <= 6 * spread + 1e-6 * (1 + abs(b.mean().item())):
            return f"a mean of {a.mean():.4g} for {b.mean():.4g}, of {a.numel()} numbers"
    return ""
