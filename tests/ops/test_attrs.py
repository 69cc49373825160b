from __future__ import annotations

from dataclasses import MISSING, fields

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Const, Var, const
from tilewright.core.dtypes import F32, F64
from tilewright.core.errors import TypeCheckError, UnsupportedError
from tilewright.ir.graph.nodes import NO_ATTRS, FusedAttrs
from tilewright.ops.attention.attention import AttentionAttrs
from tilewright.ops.attrs import make_attrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.image.resize import ResizeAttrs
from tilewright.ops.registry import op_table
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.scatter import ScatterNdAttrs


def test_numbers_become_expressions_where_they_are_expected():
    assert make_attrs("reshape", {"shape": [Var("N"), 64]}) == ReshapeAttrs((Var("N"), const(64)))
    assert make_attrs("transpose", {"perm": [1, 0]}) == TransposeAttrs((1, 0))
    found = make_attrs("resize", {"shape": [4], "scales": [[1, 2]]})
    assert isinstance(found, ResizeAttrs)
    assert found.scales == ((const(1), const(2)),)
    assert isinstance(found.shape[0], Const)


def test_names_become_types():
    for to in ("f64", Var("f64"), F64):
        assert make_attrs("cast", {"to": to}) == CastAttrs(F64)
    assert make_attrs("attention", {"precision": "f32"}) == AttentionAttrs(precision=F32)


def test_none():
    assert make_attrs("attention", {"scale": Var("none")}) == AttentionAttrs(scale=None)
    assert make_attrs("scatter_nd", {"reduction": "none"}) == ScatterNdAttrs("none")


def test_operators_without_attributes():
    assert make_attrs("relu", {}) is NO_ATTRS
    assert make_attrs("fused", {"kind": "out_fusable"}) == FusedAttrs("out_fusable")


def test_wrong_names():
    with pytest.raises(TypeCheckError, match="no attribute 'size'"):
        make_attrs("relu", {"size": 3})
    with pytest.raises(TypeCheckError, match="needs attribute 'perm'"):
        make_attrs("transpose", {})
    with pytest.raises(UnsupportedError, match="did you mean"):
        make_attrs("transpos", {})


@for_each("row", op_table().values(), ids=lambda row: row.name)
def test_defaults_of_every_operator_are_kept(row):
    if all(f.default is not MISSING for f in fields(row.attrs)):
        assert make_attrs(row.name, {}) == row.attrs()
