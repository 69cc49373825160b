from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.frontends.onnx.segments.segmented_models import with_weights
from tilewright.core.errors import ExecutionError
from tilewright.frontends.onnx.model.read import read_model
from tilewright.frontends.onnx.segments.serialize import portable, read_serialized, serialized


def test_weights_are_not_in_the_message(tmp_path: Path) -> None:
    model = read_model(with_weights(tmp_path / "there", external=True))
    proto, raw = portable(model)
    assert raw.keys() == {0}
    assert not proto.graph.initializer[0].raw_data
    assert not proto.graph.initializer[0].external_data
    assert model.proto.graph.initializer[0].external_data, "the model stays as it is"


@pytest.mark.parametrize("external", [False, True])
def test_a_model_comes_back_the_same(tmp_path: Path, external: bool) -> None:
    model = read_model(with_weights(tmp_path / "there", external))
    data, raw = serialized(model)
    again = read_serialized(data, {n: w.data for n, w in raw.items()}, "again")
    assert again.file == "again"
    assert [n.op_type for n in again.proto.graph.node] == ["MatMul", "If"]
    np.testing.assert_array_equal(again.array(0), model.array(0))


def test_damage_is_told() -> None:
    with pytest.raises(ExecutionError, match="damaged model"):
        read_serialized(b"no model", {}, "m.tw")
