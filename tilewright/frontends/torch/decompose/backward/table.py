"""The families of decompositions of operators that compute gradients."""

from __future__ import annotations

from tilewright.frontends.torch.decompose.backward import (
    attention,
    distance,
    embedding,
    masks,
    padding,
    pool,
    weight_norm,
)

FAMILIES = (attention, distance, embedding, masks, padding, pool, weight_norm)
