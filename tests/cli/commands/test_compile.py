from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import tilewright as tw
from tests.cli.invoke import fail, invoke, succeed, succeed_json
from tests.models import mlp, one_node, random_inputs, reference, save, save_external
from tilewright.core.config import override
from tilewright.ir.loop.text import parse_func, print_func


def _files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_a_saved_model(mlp_file: Path) -> None:
    assert "mlp.tw: " in succeed("compile", mlp_file)
    model, x = tw.load("mlp.tw"), random_inputs(mlp("N"), {"N": 3})
    expected = reference(mlp("N"), x)["probabilities"]
    np.testing.assert_allclose(model(x["x"]), expected, rtol=1e-5, atol=1e-6)


def test_json_and_times(mlp_file: Path) -> None:
    report = succeed_json("compile", mlp_file, "-o", "m.tw", "--dim", "N=2", "--time-passes")
    assert report["files"] == ["m.tw"]
    assert report["inputs"] == [{"name": "x", "dtype": "f32", "shape": [2, 16]}]
    assert report["counters"]["kernels"] == 3
    assert [p["name"] for p in report["passes"]][-1] == "fuse"
    assert report["stages"]["LLVM"] > 0


def test_times_go_to_standard_error(mlp_file: Path) -> None:
    result = invoke("compile", mlp_file, "--emit", "graph", "--time-passes")
    assert result.exit_code == 0
    assert result.stdout.startswith("graph @mlp(x: f32[N, 16]")
    assert "dce" in result.stderr


def test_another_machine(mlp_file: Path) -> None:
    for target, cpu in (("x86-64-v3", "x86-64-v3"), ("aarch64", "generic")):
        assert succeed_json("compile", mlp_file, "--target", target)["target"] == cpu
    message = fail("compile", mlp_file, "--target", "x87", code="target.unknown")
    assert "x86-64-v3" in message


def test_a_library(mlp_file: Path) -> None:
    succeed("compile", mlp_file, "--emit", "library", "-o", "libm.so")
    assert hasattr(ctypes.CDLL("./libm.so"), "m_run")
    assert "m_run" in Path("libm.h").read_text()


def test_texts_to_standard_output(mlp_file: Path) -> None:
    assert succeed("compile", mlp_file, "--emit", "loops").count("func @") == 3
    assert "define" in succeed("compile", mlp_file, "--emit", "llvm")
    assert ".text" in succeed("compile", mlp_file, "--emit", "asm")


def test_texts_into_files(mlp_file: Path) -> None:
    report = succeed_json("compile", mlp_file, "--emit", "loops", "-o", "kernels")
    names = {"matmul_add_relu.loops", "matmul_add.loops", "softmax.loops"}
    assert _files(Path("kernels")) == names
    assert len(report["files"]) == 3
    for path in Path("kernels").iterdir():
        assert print_func(parse_func(path.read_text())) == path.read_text()
    succeed("compile", mlp_file, "--emit", "llvm", "-o", "all.ll")
    assert "tw_main" in Path("all.ll").read_text()


def test_a_graph_and_back(mlp_file: Path) -> None:
    """The text of a graph with its constants beside it is a model too."""
    succeed("compile", mlp_file, "--emit", "graph", "-o", "m.graph")
    assert {"m.graph", "m.npz"} <= _files(Path())
    succeed("compile", mlp_file)
    succeed("compile", "m.graph", "-o", "again.tw")
    x = random_inputs(mlp("N"), {"N": 3})["x"]
    np.testing.assert_array_equal(tw.load("again.tw")(x), tw.load("mlp.tw")(x))
    fail("compile", "m.graph", "--dim", "N=1", code="dims.fused")
    Path("m.npz").unlink()
    fail("compile", "m.graph", code="parse.constant")


def test_an_edited_kernel(mlp_file: Path) -> None:
    succeed("compile", mlp_file, "--emit", "loops", "-o", "kernels")
    path = Path("kernels/matmul_add_relu.loops")
    text = path.read_text()
    for other in set(Path("kernels").iterdir()) - {path}:
        other.unlink()
    assert "max(" in text
    path.write_text(text.replace("max(", "min("))
    succeed("compile", mlp_file, "--override-loops", "kernels", "-o", "edited.tw")
    x = random_inputs(mlp("N"), {"N": 3})["x"]
    weights = {t.name: t for t in mlp("N").graph.initializer}
    w1, b1, w2, b2 = (
        np.frombuffer(weights[n].raw_data, np.float32).reshape(weights[n].dims)
        for n in ("w1", "b1", "w2", "b2")
    )
    logits = np.minimum(x @ w1 + b1, 0) @ w2 + b2
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    edited = tw.load("edited.tw")
    np.testing.assert_allclose(edited(x), expected, rtol=1e-4, atol=1e-6)
    assert "[override: " in edited.explain()
    with override(override_dir="kernels"):
        np.testing.assert_array_equal(tw.compile(str(mlp_file))(x), edited(x))


def test_edits_that_cannot_be_used(mlp_file: Path) -> None:
    command = ("compile", mlp_file, "--override-loops", "kernels")
    fail(*command, code="override.unused")  # no such folder
    succeed("compile", mlp_file, "--emit", "loops", "-o", "kernels")
    path = Path("kernels/softmax.loops")
    text = path.read_text()
    path.write_text(text.replace("func @softmax(x0", "func @softmax(y0").replace("x0[", "y0["))
    assert "begin it with: func @softmax(x0" in fail(*command, code="override.signature")
    path.write_text(text.replace("{", "[", 1))
    assert "softmax.loops:1:" in fail(*command, code="parse.syntax")
    path.write_text(text.replace("x0[", "nothing["))
    assert "softmax.loops" in fail(*command, code="parse.syntax")
    path.rename("kernels/softmaxx.loops")
    assert "the kernels are matmul_add" in fail(*command, code="override.unused")
    assert "mlp.tw" not in _files(Path())


# What is wrong with the model


def test_a_missing_file() -> None:
    fail("compile", "no.onnx", code="onnx.unreadable")
    fail("compile", "no.onnx", "--no-cache", code="onnx.file")
    fail("compile", "no.graph", code="graph.file")
    fail("compile", ".", code="onnx.unreadable")


@pytest.mark.parametrize("keep", [0, 1, 10, 0.5, 0.99])
def test_a_truncated_model(mlp_file: Path, keep: float) -> None:
    data = mlp_file.read_bytes()
    mlp_file.write_bytes(data[: int(keep * len(data)) if isinstance(keep, float) else keep])
    fail("compile", mlp_file, code="onnx.damaged")
    assert _files(Path()) == {"mlp.onnx"}


def test_a_truncated_saved_model(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    data = Path("mlp.tw").read_bytes()
    Path("mlp.tw").write_bytes(data[: len(data) // 2])
    fail("run", "mlp.tw", "--random", code="container.truncated")


def test_an_unknown_operator() -> None:
    save(one_node("Reluu"), Path("m.onnx"))
    message = fail("compile", "m.onnx", code="onnx.operator")
    assert "node the_reluu" in message
    assert "did you mean Relu" in message
    save(one_node("FusedThing", domain="com.example"), Path("m.onnx"))
    assert "com.example" in fail("compile", "m.onnx", code="onnx.operator")


def test_an_unknown_size(mlp_file: Path) -> None:
    assert "N" in fail("compile", mlp_file, "--dim", "M=2", code="dims.unknown")


def test_external_data(tmp_path: Path) -> None:
    save_external(mlp("N"), tmp_path / "m.onnx")
    succeed("compile", "m.onnx")
    first = tw.load("m.tw")(random_inputs(mlp("N"), {"N": 2})["x"])
    weights = tmp_path / "weights.bin"
    data = np.fromfile(weights, np.float32)
    (data * 2).tofile(weights)
    succeed("compile", "m.onnx")  # other weights, so nothing old from the cache
    assert not np.allclose(first, tw.load("m.tw")(random_inputs(mlp("N"), {"N": 2})["x"]))
    weights.write_bytes(weights.read_bytes()[:40])
    fail("compile", "m.onnx", code="onnx.external-range")
    weights.unlink()
    assert "weights.bin" in fail("compile", "m.onnx", code="onnx.external-data")


def test_external_data_outside_the_folder(tmp_path: Path) -> None:
    save_external(mlp("N"), tmp_path / "m.onnx")
    (tmp_path / "inner").mkdir()
    data = (tmp_path / "m.onnx").read_bytes()
    assert data.count(b"weights.bin") == 4
    (tmp_path / "inner" / "m.onnx").write_bytes(data.replace(b"weights.bin", b"../ghts.bin"))
    fail("compile", "inner/m.onnx", code="onnx.external-path")
    os.symlink(tmp_path / "weights.bin", tmp_path / "inner" / "weights.bin")
    (tmp_path / "inner" / "m.onnx").write_bytes(data)
    fail("compile", "inner/m.onnx", code="onnx.external-path")


# What is wrong with the place it should go to


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(mlp_file: Path) -> None:
    fail("compile", mlp_file, "-o", "/dev/full", code="container.disk-full")
    fail("compile", mlp_file, "--emit", "llvm", "-o", "/dev/full", code="file.disk-full")


def test_a_disk_that_fills_up(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    succeed("compile", mlp_file)
    before = Path("mlp.tw").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    fail("compile", mlp_file, "--dim", "N=1", "--no-cache", code="container.disk-full")
    fail("compile", mlp_file, "--emit", "loops", "-o", "kernels", code="file.disk-full")
    assert Path("mlp.tw").read_bytes() == before
    assert not list(Path("kernels").iterdir())
    assert not [p for p in Path().rglob("*") if p.name.startswith(".tmp-")]


def test_a_place_that_cannot_be_written(mlp_file: Path) -> None:
    fail("compile", mlp_file, "-o", "no/such/folder/m.tw", code="container.unwritable")
    Path("file").write_text("")
    fail("compile", mlp_file, "-o", "file/m.tw", code="container.unwritable")
    fail("compile", mlp_file, "--emit", "loops", "-o", "file/kernels", code="cli.folder")
    fail("compile", mlp_file, "-o", ".", code="container.unwritable")


def test_a_cache_that_cannot_be_written(mlp_file: Path, caplog: pytest.LogCaptureFixture) -> None:
    Path("file").write_text("")
    for folder in ("file/cache", "/proc/tilewright"):
        with override(cache_dir=folder):
            caplog.clear()
            succeed("compile", mlp_file, "-o", "uncached.tw")
        (warning,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
        assert f"cannot write {Path(folder).absolute()}" in warning
        assert "TW_CACHE=off" in warning
        assert tw.load("uncached.tw").inputs


def test_a_lower_precision(mlp_file: Path) -> None:
    for precision in ("bf16", "fp16"):
        succeed("compile", mlp_file, "--precision", precision)
        assert tw.load("mlp.tw").manifest["precision"] == precision
        graph = succeed("compile", mlp_file, "--precision", precision, "--emit", "graph")
        assert graph.startswith("graph @mlp")
    for emit in ("tw", "graph", "loops"):
        message = fail(
            "compile", mlp_file, "--precision", "f8", "--emit", emit, code="precision.unknown"
        )
        assert "bf16" in message


def test_a_torchscript_archive_is_told_its_types(tmp_path: Path) -> None:
    path, made = tmp_path / "s.pt", tmp_path / "s.tw"
    torch.jit.trace(torch.nn.Linear(8, 3).eval(), torch.zeros(2, 8)).save(str(path))
    succeed("compile", path, "--type", "input=f32[N, 8]", "-o", made)
    with tw.load(made) as model:
        assert [str(port) for port in model.inputs] == ["input: f32[N, 8]"]
        assert model(np.zeros((4, 8), np.float32)).shape == (4, 3)
    assert "--type" in fail("compile", path, code="torch.inputs")
    mixed = invoke("compile", path, "--type", "x=f32[3]", "--type", "f32[3]")
    assert mixed.exit_code == 2
    assert "all types with names, or none" in mixed.stderr
