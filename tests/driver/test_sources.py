from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tilewright as tw
from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.frontends.torch.eager import random
from tests.models import mlp
from tilewright.arith.expr import Var
from tilewright.core.errors import ConfigError
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options
from tilewright.driver.sources import import_graph, is_torch, read_source, source_name


def test_a_module_is_compiled() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU()).eval()
    x = random(2, 3)
    model = tw.compile(module, inputs=(x,))
    expected = module(x).detach().numpy()
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(input=x.numpy()), expected, rtol=1e-5, atol=1e-6)


def test_an_exported_program_keeps_its_sizes_open() -> None:
    module = torch.nn.Linear(3, 4).eval()
    shapes = {"input": {0: torch.export.Dim("batch", min=2)}}
    model = tw.compile(torch.export.export(module, (random(2, 3),), dynamic_shapes=shapes))
    assert model(random(7, 3)).shape == (7, 4)


@for_each(
    "source", [None, {}, [], 5, 1.5, True, np.zeros(3), print, object], ids=lambda s: repr(s)[:12]
)
def test_what_is_no_model(source: object) -> None:
    with pytest.raises(ConfigError, match="no model") as caught:
        tw.compile(source)
    assert caught.value.code == "compile.source"
    assert "onnx.ModelProto" in caught.value.help


def test_other_sources_take_no_examples() -> None:
    assert read_source("model.onnx", None) == Path("model.onnx")
    assert not is_torch("model.onnx")
    with pytest.raises(ConfigError, match="example inputs are for modules of torch"):
        tw.compile("model.onnx", inputs=(1,))


def test_sources_become_graphs() -> None:
    assert [str(v.type) for v in import_graph(mlp("N")).inputs] == ["f32[N, 16]"]
    assert [str(v.type) for v in import_graph(mlp("N"), {"N": 3}).inputs] == ["f32[3, 16]"]
    bound = import_graph(KERNELS["softmax"](Var("M"), 4, 1), {"M": 7})
    assert [str(v.type) for v in bound.inputs] == ["f32[7, 4]"]


def test_sizes_cannot_be_set_after_fusion() -> None:
    fused = optimized_graph(KERNELS["softmax"](Var("M"), 4, 1), make_options())
    with pytest.raises(ConfigError, match=r"dims.fused"):
        import_graph(fused, {"M": 3})


@for_each(
    ("source", "name"),
    [
        ("models/a.onnx", "a.onnx"),
        (Path("models/b.onnx"), "b.onnx"),
        (mlp(3), "mlp"),
        (import_graph(mlp(3)), "mlp"),
        (b"", "unnamed bytes"),
    ],
)
def test_models_have_names(source: object, name: str) -> None:
    assert source_name(source) == name


def test_a_file_of_torch_is_known_by_its_content(tmp_path: Path) -> None:
    module = torch.nn.Linear(4, 3).eval()
    path = tmp_path / "model.bin"
    torch.export.save(torch.export.export(module, (torch.zeros(2, 4),)), path)
    assert [v.name for v in import_graph(path).inputs] == ["input"]
    torch.jit.trace(module, (torch.zeros(2, 4),)).save(str(path))
    assert [v.name for v in read_source(path, {"input": torch.zeros(5, 4)}).inputs] == ["input"]
    with pytest.raises(ConfigError, match="compiled for example inputs"):
        import_graph(path)
