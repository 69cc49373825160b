from __future__ import annotations

import pytest
import torch

from tests.for_each import for_each
from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.torch.table import FAMILIES, converter, converters


def test_no_operator_is_listed_twice() -> None:
    assert sum(len(family.CONVERTERS) for family in FAMILIES) == len(converters())


@for_each("name", sorted(converters()))
def test_torch_has_the_operator(name: str) -> None:
    namespace, _, op = name.partition(".")
    assert hasattr(getattr(torch.ops, namespace), op)


def test_overloads_share_a_converter() -> None:
    assert converter("aten.add.Tensor", Loc()) is converter("aten.add.Scalar", Loc())


def test_an_unknown_operator() -> None:
    with pytest.raises(UnsupportedError, match=r"aten.fancy.default is not supported"):
        converter("aten.fancy.default", Loc("model.py", "fancy", 3))
