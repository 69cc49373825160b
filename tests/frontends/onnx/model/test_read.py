"""Reading models: from paths, bytes and protos, and what can be wrong with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.read import read_model

WEIGHT = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)


@pytest.fixture
def proto() -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 32])
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    small = numpy_helper.from_array(np.arange(3), "small")
    tensors = [small, numpy_helper.from_array(WEIGHT, "w")]
    return helper.make_model(helper.make_graph([node], "g", [x], [y], tensors))


def test_sources_agree(proto: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    for source in (proto, proto.SerializeToString(), path, str(path)):
        model = read_model(source)
        np.testing.assert_array_equal(model.array(0), np.arange(3))
        np.testing.assert_array_equal(model.array(1), WEIGHT)
        assert model.opsets[""] == proto.opset_import[0].version
    assert read_model(path).file == "model.onnx"


def test_external_data(proto: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    np.testing.assert_array_equal(read_model(path).array(1), WEIGHT)
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(FrontendError) as caught:
        read_model(path).array(1)
    assert caught.value.code == "onnx.external-range"
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(FrontendError) as caught:
        read_model(path).array(1)
    assert caught.value.code == "onnx.external-data"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.onnx", tmp_path):
        with pytest.raises(FrontendError) as caught:
            read_model(path)
        assert caught.value.code == "onnx.file"
        assert str(path) in caught.value.message


@pytest.mark.parametrize("content", [b"", b"hello, this is text", b"\x00" * 64])
def test_not_a_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(FrontendError) as caught:
        read_model(path)
    assert caught.value.code == "onnx.damaged"


def test_every_truncation_is_noticed(proto: onnx.ModelProto) -> None:
    data = proto.SerializeToString()
    for keep in range(0, len(data), 97):
        with pytest.raises(FrontendError):
            read_model(data[:keep])


def test_no_graph_and_no_version(proto: onnx.ModelProto) -> None:
    with pytest.raises(FrontendError, match="no graph"):
        read_model(onnx.ModelProto(ir_version=8))
    del proto.opset_import[:]
    with pytest.raises(FrontendError, match="version of the ONNX operators"):
        read_model(proto)


def test_a_name_of_the_graph_that_is_no_text() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    data = helper.make_model(helper.make_graph([], "named", [x], [x])).SerializeToString()
    damaged = onnx.ModelProto.FromString(data.replace(b"named", b"nam\xff\xfe"))
    with pytest.raises(FrontendError, match="model has a name that is not UTF-8"):
        read_model(damaged)


MEASURE = """
import resource, sys
from tilewright.frontends.onnx.model.read import read_model
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
model = read_model(sys.argv[1])
total = sum(float(model.array(i).sum()) for i in range(len(model.proto.graph.initializer)))
print(peak() - before)
"""


def test_peak_memory_is_near_the_size_of_the_file(tmp_path: Path) -> None:
    tensors = [
        numpy_helper.from_array(np.ones((1024, 4096), np.float32), f"w{i}") for i in range(6)
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    path = tmp_path / "big.onnx"
    onnx.save(helper.make_model(helper.make_graph([], "g", [x], [x], tensors)), path)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 1.5 * path.stat().st_size


def test_versions_of_operators_that_do_not_exist(proto: onnx.ModelProto) -> None:
    for domain, version in (("", 99), ("", 0), ("ai.onnx.ml", 99)):
        made = onnx.ModelProto()
        made.CopyFrom(proto)
        made.opset_import.append(helper.make_opsetid(domain, version))
        with pytest.raises(FrontendError, match=f"version {version} of the operators") as caught:
            read_model(made)
        assert caught.value.code == "onnx.opset"
    proto.opset_import.append(helper.make_opsetid("somebody.else", 99))
    read_model(proto)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for data, name in ((b"GGUF\x03\0\0\0", "a GGUF file"), (b"func @mm(\n", r"\.loops")):
        path.write_bytes(data)
        for source in (path, data):
            with pytest.raises(
                FrontendError, match=f"is not an ONNX model, but .*{name}"
            ) as caught:
                read_model(source)
            assert caught.value.code == "onnx.format"
            assert caught.value.help
