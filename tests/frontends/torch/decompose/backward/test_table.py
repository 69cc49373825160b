from __future__ import annotations

from tilewright.frontends.torch.decompose.backward.table import FAMILIES


def test_operators_are_named_once() -> None:
    names = [name for family in FAMILIES for name in family.DECOMPOSITIONS]
    assert len(names) == len(set(names))
    assert all("_backward" in name for name in names)
