from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import compare, random_inputs
from tests.models import convnet, mlp, reference, save, transformer
from tests.models import random_inputs as onnx_inputs
from tilewright.arith.expr import Var
from tilewright.core.config import override
from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.driver.compile import compile, compile_container
from tilewright.driver.options import make_options
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder


@pytest.mark.parametrize(
    ("model", "dims"),
    [
        (mlp(3), {}),
        (mlp("N"), {"N": 5}),
        (convnet(2), {}),
        (transformer("N", "S"), {"N": 2, "S": 7}),
    ],
    ids=["mlp", "mlp-symbolic", "convnet", "transformer-symbolic"],
)
def test_models_agree_with_the_reference(model: onnx.ModelProto, dims: dict[str, int]) -> None:
    inputs = onnx_inputs(model, dims)
    expected = reference(model, inputs)
    with compile(model, threads=2, cache=False) as native:
        found = native.run(inputs)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


CACHED = """
import sys
import numpy as np
import tilewright as tw

model = tw.compile(sys.argv[1], threads=1)
model(np.ones((3, 16), np.float32))
print(*sorted({"llvmlite", "onnx", "islpy", "ml_dtypes", "tilewright.arith"} & set(sys.modules)))
"""


def test_what_is_in_the_cache_needs_no_compiler(tmp_path: Path) -> None:
    path = save(mlp(3), tmp_path / "model.onnx")
    environment = {**os.environ, "TW_CACHE": "on", "TW_CACHE_DIR": str(tmp_path / "cache")}
    printed = [
        subprocess.run(
            [sys.executable, "-c", CACHED, str(path)],
            cwd=Path(__file__).parents[2],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.split()
        for _ in range(2)
    ]
    assert "llvmlite" in printed[0]
    assert printed[1] == []


def test_one_compilation_serves_every_size() -> None:
    model = transformer("N", "S")
    with compile(model, threads=1, cache=False) as native:
        for n, s in ((1, 1), (2, 7), (0, 3), (3, 64), (1, 2), (4, 33)):
            inputs = onnx_inputs(model, {"N": n, "S": s})
            found = native.run(inputs)["y"]
            assert found.shape == (n, s, 16)
            if n:
                expected = reference(model, inputs)["y"]
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_dims_fix_a_symbolic_size() -> None:
    graph = KERNELS["softmax"](Var("M"), Var("N"), 1)
    with compile(graph, dims={"N": 9}, threads=1, cache=False) as native:
        assert native.inputs[0].shape == ("M", 9)
        inputs = random_inputs(graph, {"M": 4, "N": 9})
        compare(graph, native, inputs)
        with pytest.raises(ExecutionError):
            native(**random_inputs(graph, {"M": 4, "N": 8}))


def test_inputs_that_are_too_small_for_a_window() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 2, Var("H"), 4))
    w = g.constant(np.ones((3, 2, 3, 1), "f4"))
    values = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
    graph = g.graph(g.add("conv", x, w, attrs=make_attrs("conv", values)))
    with compile(graph, threads=1, cache=False) as native:
        assert native(np.ones((1, 2, 2, 4), "f4")).shape == (1, 3, 0, 4)
        with pytest.raises(ExecutionError, match=r"run.too-small.*\[1, 3, -1, 4\]"):
            native(np.ones((1, 2, 1, 4), "f4"))


def test_the_second_time_comes_from_the_cache(tmp_path) -> None:
    path = save(mlp(2), tmp_path / "m.onnx")
    seen: list[str] = []
    first = compile_container(path, make_options(progress=seen.append))
    assert seen
    again: list[str] = []
    second = compile_container(path, make_options(progress=again.append))
    assert again == []
    assert first.manifest == second.manifest
    assert first.objects.keys() == second.objects.keys()
    np.testing.assert_array_equal(first.weights, second.weights)


def test_for_another_machine() -> None:
    container = compile_container(
        KERNELS["dense"](4, 8, 8), make_options(target="x86-64-v4", cache=False)
    )
    assert container.manifest["target"]["cpu"] == "x86-64-v4"
    with pytest.raises(ConfigError, match=r"target.unknown"):
        compile_container(KERNELS["dense"](4, 8, 8), make_options(target="pdp11"))


def test_the_package_offers_it() -> None:
    assert tw.compile is compile


def test_the_log_says_what_was_compiled(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = save(mlp(3), tmp_path / "model.onnx")
    with caplog.at_level(logging.INFO, logger="tilewright"), override(cache_dir=tmp_path / "cache"):
        for _ in range(2):
            compile(path, threads=1).close()
    lines = [r.getMessage() for r in caplog.records if r.name == "tilewright.driver.compile"]
    key = r"key [0-9a-f]{64}"
    wanted = [
        rf"model\.onnx: cache miss, {key}",
        r"compiling model\.onnx for native in f32",
        r"compiled model\.onnx in [0-9.]+ s: 3 kernels",
        rf"model\.onnx: cache hit, {key}",
    ]
    assert all(re.fullmatch(w, line) for w, line in zip(wanted, lines, strict=True)), lines


def test_the_log_has_the_rule_of_each_kernel(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="tilewright.driver.kernel"):
        compile_container(mlp(3), make_options(cache=False))
    assert [r.getMessage() for r in caplog.records] == [
        "matmul_add_relu is scheduled by the rule register_blocked",
        "matmul_add is scheduled by the rule register_blocked",
        "softmax is scheduled by the rule rowwise",
    ]
