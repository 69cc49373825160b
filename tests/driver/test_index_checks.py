"""Indices outside their tensors in models as users have them; see also tests/differential."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import tilewright as tw
from tilewright.compat.onnxruntime import InferenceSession
from tilewright.compat.onnxruntime.status import InvalidArgument
from tilewright.core.errors import ConfigError, ExecutionError

ROWS, WIDTH = 30, 8
GOOD = np.arange(12).reshape(3, 4)
BAD = np.where(GOOD == 7, ROWS, GOOD)
TABLE = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
MESSAGE = f"index {ROWS} is outside a dimension of {ROWS}"


@pytest.fixture(scope="module")
def proto() -> onnx.ModelProto:
    """Tokens of any number, embedded."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "ids"], ["rows"], name="embedding"),
            helper.make_node("Relu", ["rows"], ["y"]),
        ],
        "embed",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(TABLE, "table")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_a_run_after_an_error_is_right(proto: onnx.ModelProto, tmp_path: Path) -> None:
    for model in (tw.compile(proto, threads=2), tw.load(tw.compile(proto).save(tmp_path / "m.tw"))):
        for _ in range(2):
            with pytest.raises(ExecutionError, match=MESSAGE) as caught:
                model(BAD)
            assert caught.value.code == "run.index"
            assert caught.value.loc.node == "embedding"
            np.testing.assert_array_equal(model(GOOD), np.maximum(TABLE[GOOD], 0))


def test_checks_can_be_left_out(proto: onnx.ModelProto) -> None:
    found = tw.compile(proto, checks="off")(BAD)
    np.testing.assert_array_equal(found, np.maximum(TABLE[np.minimum(BAD, ROWS - 1)], 0))
    with pytest.raises(ConfigError, match="checks are 'of'"):
        tw.compile(proto, checks="of")


def test_the_drop_in_raises_what_onnx_runtime_does(proto: onnx.ModelProto) -> None:
    session = InferenceSession(proto.SerializeToString())
    with pytest.raises(InvalidArgument, match=MESSAGE):
        session.run(None, {"ids": BAD})


def test_an_embedding_of_torch() -> None:
    module = torch.nn.Sequential(torch.nn.Embedding(ROWS, WIDTH), torch.nn.Linear(WIDTH, 3)).eval()
    compiled = torch.compile(module, backend="tilewright")
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.tensor(GOOD)), module(torch.tensor(GOOD)))
        with pytest.raises(ExecutionError, match=MESSAGE):
            compiled(torch.tensor(BAD))


def test_a_library_ends_with_a_status(proto: onnx.ModelProto, tmp_path: Path) -> None:
    tw.compile(proto, dims={"batch": 3, "length": 4}).export_library(tmp_path / "libembed.so")
    program = tmp_path / "main.c"
    program.write_text(
        '#include "libembed.h"\n'
        "int main(int n, char **given) {\n"
        f"  int64_t ids[12] = {{{', '.join(map(str, GOOD.reshape(-1)))}}};\n"
        f"  float y[{GOOD.size * WIDTH}];\n"
        f"  if (n > 1) ids[7] = {ROWS};\n"
        "  const void *inputs[] = {ids}; void *outputs[] = {y};\n"
        "  return embed_run(inputs, outputs, 0);\n"
        "}\n"
    )
    command = ["gcc", "main.c", "-L.", "-lembed", "-Wl,-rpath,.", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0
    assert subprocess.run(["./main", "bad"], cwd=tmp_path).returncode != 0
