from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from tests.cli.invoke import fail, invoke, succeed, succeed_json
from tests.models import mlp, one_node, random_inputs, reference, save


@pytest.fixture
def x() -> np.ndarray:
    return random_inputs(mlp("N"), {"N": 3})["x"]


def test_inputs_from_files(mlp_file: Path, x: np.ndarray) -> None:
    np.save("x.npy", x)
    text = succeed("run", mlp_file, "--input", "x=x.npy", "--output-dir", "out/deep")
    assert "probabilities" in text
    assert "[3, 5]" in text
    found = np.load("out/deep/probabilities.npy")
    expected = reference(mlp("N"), {"x": x})["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_random_inputs_are_repeatable(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    runs = [
        succeed_json("run", model, "--random", "--seed", seed, "--dim", "N=4")["outputs"][0]
        for model, seed in ((mlp_file, 0), ("mlp.tw", 0), (mlp_file, 1))
    ]
    assert runs[0]["shape"] == [4, 5]
    assert runs[0]["max"] == pytest.approx(runs[1]["max"])
    assert runs[0]["max"] != runs[2]["max"]
    assert runs[0]["mean"] == pytest.approx(0.2)


def test_profile_and_threads(conv_file: Path) -> None:
    assert "GFLOP/s" in succeed("run", conv_file, "--random", "--profile", "--threads", 1)


def test_what_is_not_finite_is_counted(x: np.ndarray) -> None:
    save(one_node("Log", (4,)), Path("log.onnx"))
    np.save("x.npy", np.array([-1.0, 0.0, 1.0, np.e], np.float32))
    (row,) = succeed_json("run", "log.onnx", "-i", "x=x.npy")["outputs"]
    assert row["not_finite"] == 2
    assert (row["min"], row["max"]) == (0.0, pytest.approx(1.0, abs=1e-6))


def test_wrong_inputs(mlp_file: Path, x: np.ndarray) -> None:
    run = ("run", mlp_file, "--input")
    np.save("wide.npy", np.zeros((3, 17), np.float32))
    assert "[N, 16]" in fail(*run, "x=wide.npy", code="run.shape")
    np.save("flat.npy", np.zeros(16, np.float32))
    fail(*run, "x=flat.npy", code="run.shape")
    np.save("double.npy", x.astype(np.float64))
    assert "astype" in fail(*run, "x=double.npy", code="run.dtype")
    np.save("x.npy", x)
    assert "no input y" in fail(*run, "y=x.npy", code="run.arguments")
    assert "x not given" in fail("run", mlp_file, code="run.arguments")
    assert "--dim N=" in fail("run", mlp_file, "--random", code="cli.dim")


def test_wrong_files(mlp_file: Path) -> None:
    run = ("run", mlp_file, "--input")
    fail(*run, "x=none.npy", code="cli.array")
    for content in (b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04nonsense"):
        Path("bad.npy").write_bytes(content)
        fail(*run, "x=bad.npy", code="cli.array")
    np.save("object.npy", np.array([{}]), allow_pickle=True)
    fail(*run, "x=object.npy", code="cli.array")
    np.savez("two.npz", a=np.zeros(1), b=np.zeros(1))
    fail(*run, "x=two.npz", code="cli.array")


@pytest.mark.parametrize("text", ["x", "=x.npy", "x="])
def test_inputs_that_are_not_spelt_right(mlp_file: Path, text: str) -> None:
    result = invoke("run", mlp_file, "--input", text)
    assert result.exit_code == 2
    assert "NAME=FILE.npy" in result.stderr


def test_outputs_are_whole_or_not_there(mlp_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ("run", mlp_file, "--random", "--dim", "N=1", "--output-dir")
    Path("file").write_text("")
    fail(*run, "file/out", code="cli.folder")
    succeed(*run, "out")
    before = Path("out/probabilities.npy").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    fail(*run, "out", "--seed", "1", code="file.disk-full")
    assert [p.name for p in Path("out").iterdir()] == ["probabilities.npy"]
    assert Path("out/probabilities.npy").read_bytes() == before


def test_a_model_for_another_machine(mlp_file: Path) -> None:
    from tilewright.target.host import host

    other = "x86-64-v3" if host().architecture == "aarch64" else "aarch64"
    succeed("compile", mlp_file, "--target", other)
    fail("run", "mlp.tw", "--random", "--dim", "N=1", code="native.platform")


def test_threads(mlp_file: Path) -> None:
    from tilewright.cli.source import open_model
    from tilewright.core.config import override
    from tilewright.driver.options import make_options

    succeed("compile", mlp_file)
    with override(threads=1):
        for path in (mlp_file, Path("mlp.tw")):
            assert open_model(path, make_options()).threads == 1
            assert open_model(path, make_options(threads=2)).threads == 2


def test_another_target(mlp_file: Path) -> None:
    run = ("run", mlp_file, "--random", "--dim", "N=2", "--target")
    assert "[2, 5]" in succeed(*run, "native")
    fail(*run, "pdp11", code="target.unknown")
    succeed("compile", mlp_file, "-o", "m.tw")
    fail("run", "m.tw", "--random", "--target", "x86-64-v3", code="target.saved")
