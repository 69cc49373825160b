"""The table of converters."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from tests.for_each import for_each
from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.table import FAMILIES, converter, converters, key_of


def _node(op: str, domain: str = "") -> OnnxNode:
    return OnnxNode(helper.make_node(op, [], ["y"], domain=domain), (), Loc(), 20)


def test_no_operator_is_listed_twice() -> None:
    listed = [name for family in FAMILIES for name in family.CONVERTERS]
    assert len(listed) == len(set(listed))


def test_operators_of_the_default_domain_exist() -> None:
    known = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    ours = {name for name in converters() if "::" not in name}
    assert ours - known == {"SimplifiedLayerNormalization"}  # which only onnxruntime defines


def test_domains() -> None:
    assert key_of(_node("Relu")) == key_of(_node("Relu", "ai.onnx")) == "Relu"
    assert key_of(_node("Relu", "com.x")) == "com.x::Relu"
    assert converter(_node("Relu")) is converters()["Relu"]
    with pytest.raises(UnsupportedError, match=r"domain com\.x"):
        converter(_node("Relu", "com.x"))


@for_each("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
def test_layouts_of_one_machine_are_refused(domain: str) -> None:
    with pytest.raises(UnsupportedError, match="ORT_ENABLE_EXTENDED"):
        converter(_node("Conv", domain))
