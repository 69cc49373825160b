"""Tensors as arrays and back, over the same memory wherever that is contiguous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tilewright.core.dtypes import BF16, from_numpy
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.dtypes import from_torch

# NumPy and torch do not know each other's bf16: its bits go over as integers.
_BITS = torch.int16


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """A dense tensor as an array; copied only if not contiguous, or in the memory of a GPU.

    A complex tensor is a real one with a last dimension of two.
    """
    whole = _whole(tensor).cpu()
    if whole.dtype == torch.bfloat16:
        return np.asarray(whole.view(_BITS).numpy()).view(BF16.numpy)
    if whole.is_complex():
        whole = torch.view_as_real(whole)
    return np.asarray(whole.numpy()).astype(from_torch(whole.dtype).numpy, copy=False)


def to_argument(tensor: torch.Tensor) -> np.ndarray | torch.Tensor:
    """A tensor as a model takes it: as itself where it is on a GPU, else as an array."""
    if not tensor.is_cuda:
        return to_array(tensor)
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def argument_reader(like: torch.Tensor) -> Callable[[torch.Tensor], np.ndarray | torch.Tensor]:
    """The quickest `to_argument` for tensors of the type, layout and device of this one."""
    is_plain = type(like) in (torch.Tensor, torch.nn.Parameter) and like.layout == torch.strided
    known_to_numpy = not like.is_complex() and like.dtype != torch.bfloat16
    return _plain_array if is_plain and known_to_numpy and like.is_cpu else to_argument


def _plain_array(tensor: torch.Tensor) -> np.ndarray:
    """An array that may have strides. Only what has to be detached or negated first is."""
    is_other = tensor.requires_grad or tensor.is_neg()
    found: np.ndarray = tensor.numpy(force=True) if is_other else tensor.numpy()
    return found


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor without lazy negation or conjugation."""
    if tensor.device.type not in ("cpu", "cuda") or tensor.layout != torch.strided:
        raise UnsupportedError(
            "torch.tensor",
            f"a tensor on {tensor.device} of layout {str(tensor.layout).removeprefix('torch.')}",
            help="tensors must be dense and in the memory of the processor or of a GPU",
        )
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def to_tensor(array: Any) -> torch.Tensor:
    """A result of a model as a tensor over the same memory."""
    if not isinstance(array, np.ndarray):
        return torch.from_dlpack(array)
    if from_numpy(array.dtype) == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
