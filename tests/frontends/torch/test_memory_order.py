from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.eager import Wrapped, random
from tilewright.frontends.torch.importer import import_fx
from tilewright.frontends.torch.memory_order import axes_in_memory


@pytest.mark.parametrize(
    ("tensor", "axes"),
    [
        (torch.empty(2, 3, 4), None),
        (torch.empty(()), None),
        (torch.empty(3, 4).T, (1, 0)),
        (torch.empty(2, 3, 4, 5).permute(0, 3, 1, 2), (0, 2, 3, 1)),
        (torch.empty(2, 5, 3, 4, 6).permute(4, 1, 0, 3, 2), (2, 1, 4, 3, 0)),
        (torch.empty(4, 1).T, None),  # one row is a column
        (torch.empty(3, 1, 4).transpose(0, 2), (1, 2, 0)),
        (torch.empty(3, 0).T, None),
        (torch.empty(3, 1).expand(3, 4), None),
        (torch.empty(3, 4)[:, ::2], None),
        (torch.empty(4, 8)[:, :3].T, None),
    ],
)
def test_axes_from_the_outermost(tensor: torch.Tensor, axes: tuple[int, ...] | None) -> None:
    assert axes_in_memory(tensor) == axes
    if axes is not None:
        assert tensor.permute(axes).is_contiguous()


def test_sizes_that_stay_open_go_by_their_example() -> None:
    rows = torch.export.Dim("rows")

    def turned(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).permute(1, 2, 0)

    x = random(4, 3, 5)
    program = torch.export.export(Wrapped(turned), (x,), dynamic_shapes=((({0: rows},)),))
    graph = program.run_decompositions({}).graph_module
    assert import_fx(graph, {}).axes == (None,)
    imported = import_fx(graph, {}, in_memory_order=True)
    assert imported.axes == ((2, 0, 1),)
    (out,) = imported.graph.outputs
    assert [str(d) for d in imported.graph.types[out].shape][1:] == ["3", "5"]
