"""Attention by NumPy, step by step in f64, for the tests of `fused_attention`."""

from __future__ import annotations

import numpy as np


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float = 1.0,
    softcap: float = 0.0,
    mask: np.ndarray | None = None,
    hidden: float = -np.inf,
    band: tuple[int, int, int] | None = None,
    fully_masked: str = "nan",
) -> np.ndarray:
    """`band` is offset, left and right; operands are in their logical order."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    with np.errstate(all="ignore"):
        scores = q @ np.swapaxes(k, -1, -2) * scale
        if softcap:
            scores = np.tanh(scores / softcap) * softcap
        if mask is not None:
            scores = np.where(mask, scores, hidden) if mask.dtype == bool else scores + mask
        if band is not None:
            scores = np.where(_seen(scores.shape, *band), scores, -np.inf)
        peak = scores.max(-1, keepdims=True, initial=-np.inf)
        e = np.exp(scores - np.where(peak == -np.inf, 0, peak))
        total = e.sum(-1, keepdims=True)
        weights = e / (total if fully_masked == "nan" else np.where(total == 0, 1, total))
    if fully_masked == "finite":
        weights = np.where(np.isnan(total), 0, weights)
    return weights @ v


def _seen(shape: tuple[int, ...], offset: int, left: int, right: int) -> np.ndarray:
    i, j = np.arange(shape[-2])[:, None] + offset, np.arange(shape[-1])
    seen = np.ones(shape[-2:], bool)
    if right >= 0:
        seen &= j <= i + right
    if left >= 0:
        seen &= i - left <= j
    return seen


def operands(
    batch: tuple[int, ...], queries: int, keys: int, size: int, values: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random queries, keys and values."""
    rng = np.random.default_rng(queries * 31 + keys)
    q = rng.standard_normal((*batch, queries, size)).astype(np.float32)
    k = rng.standard_normal((*batch, keys, size)).astype(np.float32)
    return q, k, rng.standard_normal((*batch, keys, values)).astype(np.float32)
