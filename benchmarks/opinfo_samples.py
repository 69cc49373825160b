"""Samples of the operators of torch's OpInfo: which are taken, their copies, their tolerances.

    chosen("add", torch.float32, count=6)       # at most six, drawn evenly by a fixed seed

OpInfo is what torch tests its own operators with; it needs the package `expecttest`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo, SampleInput
from torch.utils._pytree import tree_leaves, tree_map

SEED = 2026
LARGEST = 1 << 20
"""Elements of the arguments of a sample, above which it is not taken."""


@cache
def operators() -> dict[str, OpInfo]:
    """Every operator by its name and the name of its variant."""
    # Operators with random results seed torch's generator first, which cannot be traced; whoever
    # calls them here does that.
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    return {full_name(op): op for op in common_methods_invocations.op_db}


def full_name(op: OpInfo) -> str:
    """The name of an operator, with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def takes(op: OpInfo, dtype: torch.dtype, backward: bool) -> bool:
    """Whether there are samples of an element type, with gradients if they are asked for."""
    if not backward:
        return dtype in op.supported_dtypes("cpu")
    return bool(op.supports_autograd) and dtype in op.supported_backward_dtypes("cpu")


def chosen(op: OpInfo, dtype: torch.dtype, count: int, backward: bool = False) -> list[SampleInput]:
    """At most `count` samples of moderate size, in order; always the same ones."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    found = [
        sample
        for sample in op.sample_inputs("cpu", dtype, requires_grad=backward)
        if sum(t.numel() for t in tensors(sample)) <= LARGEST
    ]
    drawn = random.Random(SEED).sample(range(len(found)), min(count, len(found)))
    return [found[i] for i in sorted(drawn)]


def tensors(tree: Any) -> Iterator[torch.Tensor]:
    """All tensors of a sample, or of results."""
    if isinstance(tree, SampleInput):
        tree = (tree.input, tree.args, tree.kwargs)
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def copied(tree: Any) -> Any:
    """The same arguments in memory of their own, strides and offsets kept; none shares any."""
    return tree_map(lambda leaf: _copy(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)


def in_f64(tree: Any) -> Any:
    """The same arguments, floats and complex numbers of 64 bits a part."""
    return tree_map(lambda leaf: _widened(leaf) if isinstance(leaf, torch.Tensor) else leaf, tree)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    wide = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    return wide.requires_grad_(tensor.requires_grad)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    if tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
        made = plain.clone()
    else:
        made = torch.empty(0, dtype=tensor.dtype)
        memory = plain.untyped_storage().clone()
        made.set_(memory, plain.storage_offset(), plain.shape, plain.stride())
    return made.requires_grad_(tensor.requires_grad)


def tolerances(op: OpInfo, dtype: torch.dtype) -> tuple[float, float]:
    """What OpInfo allows this operator in a test, relative and absolute; 0 where it is silent."""
    rtol = atol = 0.0
    for info in op.decorators:
        if not isinstance(info, DecorateInfo) or info.device_type not in (None, "cpu"):
            continue
        for one in info.decorators:
            if isinstance(one, toleranceOverride) and dtype in one.d:
                rtol, atol = max(rtol, one.d[dtype].rtol), max(atol, one.d[dtype].atol)
    return rtol, atol
