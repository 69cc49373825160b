from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json


def test_an_onnx_model(mlp_file: Path) -> None:
    found = succeed_json("inspect", mlp_file)
    assert found["inputs"] == ["x: f32[N, 16]"]
    assert found["outputs"] == ["probabilities: f32[N, 5]"]
    assert found["sizes"] == ["N"]
    assert found["host_operators"] == {}
    assert sum(found["operators"].values()) > 2
    assert found["weight_bytes"] == 4 * found["parameters"] > 0
    text = succeed("inspect", mlp_file)
    assert "x: f32[N, 16]" in text
    assert "native" in text


def test_a_compiled_model(mlp_file: Path) -> None:
    succeed("compile", mlp_file, "-o", "m.tw")
    found = succeed_json("inspect", "m.tw")
    assert found["format"] == "compiled"
    assert found["inputs"] == ["x: f32[N, 16]"]
    assert found["kernels"] > 0
    assert found["code_bytes"] > 0
    assert "precision: f32" in succeed("inspect", "m.tw")


def test_what_is_no_model() -> None:
    Path("w.onnx").write_bytes(b"GGUF\x03\0\0\0")
    assert "a GGUF file" in fail("inspect", "w.onnx", code="onnx.format")
    fail("inspect", "missing.onnx", code="onnx.file")
