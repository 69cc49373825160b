"""Arguments of torch to a compiled graph and its results back, with nothing to decide in a call.

How an argument becomes an array, and a result a tensor, is chosen when a graph is compiled: for
tensors of other types, layouts or devices Dynamo makes another graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tilewright.core.dtypes import BF16
from tilewright.frontends.torch.arrays import argument_reader, to_argument, to_tensor
from tilewright.frontends.torch.draw_seed import drawn_seed
from tilewright.frontends.torch.importer import Imported
from tilewright.ir.types import TensorType

Boxed = Callable[[list[Any]], list[Any]]
Maker = Callable[[Any], Any]


def boxed_call(
    imported: Imported,
    model: Callable[..., Any],
    args: Sequence[Any],
    inputs: Sequence[int],
    there: torch.device | None,
) -> Boxed:
    """A model that takes a list of arguments like `args`, which it empties.

    `inputs` are those that the model takes; results go `there` if that is a GPU.
    """
    readers = [(i, argument_reader(args[i])) for i in inputs]
    makers = _makers(imported, there)
    takes_seed, is_single = imported.takes_seed, len(imported.graph.outputs) == 1

    def call(args: list[Any]) -> list[Any]:
        given = [read(args[i]) for i, read in readers]
        args.clear()
        if takes_seed:
            given.append(to_argument(drawn_seed(there)))
        found = model(*given)
        if is_single:
            found = (found,)
        return [make(found[i]) if make is not None else None for i, make in makers]

    return call


def _makers(imported: Imported, there: torch.device | None) -> list[tuple[int, Maker | None]]:
    """For each result of the graph: which of the model it is, and what torch's is made by."""
    found: list[tuple[int, Maker | None]] = []
    number = 0
    for kind, axes in zip(imported.kinds, imported.axes, strict=True):
        if kind is None:
            found.append((0, None))
            continue
        given = imported.graph.types[imported.graph.outputs[number]]
        is_known = isinstance(given, TensorType) and given.dtype != BF16  # to NumPy as to torch
        is_plain = is_known and kind is torch.Tensor and there is None
        found.append((number, _plain(axes) if is_plain else _any_other(kind, axes, there)))
        number += 1
    return found


def _plain(axes: Sequence[int] | None) -> Maker:
    """An array as a tensor over its memory, `axes` put back where torch has them."""
    if axes is None:
        return torch.from_numpy  # type: ignore[no-any-return]
    back = np.argsort(axes).tolist()
    return lambda array: torch.from_numpy(array.transpose(back))


def _any_other(kind: type, axes: Sequence[int] | None, there: torch.device | None) -> Maker:
    """A number, a complex tensor, one of bf16, or one on a GPU."""
    if kind is int:
        return lambda found: (
            int(found) if isinstance(found, torch.Tensor) else int(np.asarray(found))
        )
    back = None if axes is None else np.argsort(axes).tolist()

    def make(found: Any) -> torch.Tensor:
        tensor = found if isinstance(found, torch.Tensor) else to_tensor(found)
        if there is not None and not tensor.is_cuda:
            tensor = tensor.to(there)
        if kind is complex:
            tensor = torch.view_as_complex(tensor)
        return tensor if back is None else tensor.permute(back)

    return make
