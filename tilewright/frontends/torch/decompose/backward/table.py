"""The families of decompositions of operators that compute gradients."""

from __future__ import annotations

from tilewright.frontends.torch.decompose.backward import attention, pool

FAMILIES = (attention, pool)
