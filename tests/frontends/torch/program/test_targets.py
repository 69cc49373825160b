from __future__ import annotations

import operator

import pytest
import torch

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.program.targets import find_target


def test_operators_and_functions_of_numbers() -> None:
    assert find_target("torch.ops.aten.add.Tensor") is torch.ops.aten.add.Tensor
    assert find_target("torch.ops.higher_order.cond") is torch.ops.higher_order.cond
    assert find_target("_operator.floordiv") is operator.floordiv
    assert find_target("_operator.getitem") is operator.getitem
    assert find_target("torch.sym_max") is torch.sym_max
    assert find_target("math.trunc")(2.5) == 2


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "torch.load",
        "torch.ops.aten.no_such.Tensor",
        "torch.ops.aten.add.no_such",
        "torch.ops.aten.add.__class__",
        "torch.ops.aten.__init__",
        "torch.ops.aten._save_something.default",
        "torch.ops.aten.from_file.default",
        "torch.ops.loaded.load_library",
        "torch.ops.aten.add.Tensor.redispatch",
        "_operator.attrgetter",
        "",
    ],
)
def test_nothing_else_can_be_called(name: str) -> None:
    with pytest.raises(UnsupportedError, match="is no operator of torch"):
        find_target(name)
