"""Tensors as arrays and back, over the same memory wherever that is contiguous."""

from __future__ import annotations

import numpy as np
import torch

from tilewright.core.dtypes import BF16, from_numpy
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.dtypes import from_torch

# NumPy and torch do not know each other's bf16: its bits go over as integers.
_BITS = torch.int16


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """A dense tensor in the processor's memory as an array; copied only if not contiguous."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise UnsupportedError(
            "torch.tensor",
            f"a tensor on {tensor.device} of layout {str(tensor.layout).removeprefix('torch.')}",
            help="tensors must be dense and in the processor's memory: module.cpu()",
        )
    whole = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if whole.dtype == torch.bfloat16:
        return whole.view(_BITS).numpy().view(BF16.numpy)
    return whole.numpy().astype(from_torch(whole.dtype).numpy, copy=False)


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """An array as a tensor over the same memory."""
    if from_numpy(array.dtype) == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
