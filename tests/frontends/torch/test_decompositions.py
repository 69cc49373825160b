from __future__ import annotations

import torch

from tilewright.frontends.torch.decompositions import decompositions, packet


def test_what_has_a_converter_is_not_broken_up() -> None:
    table = decompositions()
    assert torch.ops.aten.silu.default not in table
    assert torch.ops.aten.scaled_dot_product_attention.default not in table
    assert torch.ops.aten.addcmul.default in table


def test_packets() -> None:
    assert packet("aten.add.Tensor") == "aten.add"
