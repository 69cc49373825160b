"""Dimensions: names made fit, unnamed ones fresh, sizes chosen by the user."""

from __future__ import annotations

import pytest
from onnx import TensorShapeProto

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.errors import ConfigError
from tilewright.frontends.onnx.model.dims import Dims

Dim = TensorShapeProto.Dimension


def test_numbers_and_names() -> None:
    dims = Dims({})
    assert dims.of(Dim(dim_value=7), "x", 0) is const(7)
    assert dims.of(Dim(dim_value=0), "x", 0) is const(0)
    assert dims.of(Dim(dim_param="batch"), "x", 0) is Var("batch")
    assert dims.of(Dim(dim_param="batch"), "y", 1) is Var("batch")


def test_names_are_made_fit_and_stay_distinct() -> None:
    dims = Dims({})
    first = dims.of(Dim(dim_param="past + len"), "x", 0)
    assert first is Var("past_len")
    assert dims.of(Dim(dim_param="past * len"), "x", 0) is Var("past_len_1")
    assert dims.of(Dim(dim_param="past + len"), "y", 0) is first
    assert dims.of(Dim(dim_param="3"), "y", 0) is Var("d3")
    assert dims.of(Dim(dim_param="é"), "y", 0) is Var("d")


def test_unnamed_are_fresh() -> None:
    dims = Dims({})
    assert dims.of(Dim(), "x", 0) is Var("x_0")
    assert dims.of(Dim(dim_value=-1), "x", 1) is Var("x_1")
    assert dims.of(Dim(dim_param="x_0"), "y", 0) is Var("x_0_1")
    assert dims.of(Dim(dim_param="?"), "y", 1) is Var("y_1")
    assert dims.of(Dim(dim_param="?"), "y", 2) is Var("y_2")


def test_fixed() -> None:
    dims = Dims({"batch": 2, "seq_len": 9, "x_1": 4})
    assert dims.of(Dim(dim_param="batch"), "x", 0) is const(2)
    assert dims.of(Dim(dim_param="seq len"), "x", 0) is const(9)
    assert dims.of(Dim(), "x", 1) is const(4)
    assert dims.of(Dim(dim_param="other"), "x", 2) is Var("other")
    dims.check_used()


def test_fixed_but_not_there() -> None:
    dims = Dims({"Batch": 2})
    dims.of(Dim(dim_param="batch"), "x", 0)
    with pytest.raises(ConfigError, match="named Batch") as caught:
        dims.check_used()
    assert "batch" in caught.value.help


@for_each("size", [-1, 2.0, True, "3"])
def test_not_a_size(size: object) -> None:
    with pytest.raises(ConfigError, match="not a size"):
        Dims({"n": size})  # type: ignore[dict-item]
