from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json


def test_text(mlp_file: Path) -> None:
    text = succeed("explain", mlp_file)
    assert "fuse " in text
    assert "softmax" in text
    assert "vectorize(" in text
    assert "arena" in text


def test_the_least_time_of_each_kernel_here(conv_file: Path) -> None:
    assert "ms at least, by " in succeed("explain", conv_file, "--threads", 1)
    assert "ms at least" not in succeed("explain", conv_file, "--target", "x86-64-v4")
    here = succeed_json("explain", conv_file)["kernels"]
    assert all(k["least_ms"] > 0 and k["bound"] in ("compute", "memory") for k in here)


def test_a_saved_model(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    assert "softmax" in succeed("explain", "mlp.tw")
    assert succeed_json("explain", "mlp.tw")["inputs"][0]["name"] == "x"
    fail("explain", "mlp.tw", "--passes", code="explain.saved")


def test_json(conv_file: Path) -> None:
    report = succeed_json("explain", conv_file, "--target", "x86-64-v4")
    assert report["memory"]["overhead"] >= 1
    assert all(k["loops"].startswith("func @") for k in report["kernels"])
    assert any("512" in line for line in report["target"].splitlines())
