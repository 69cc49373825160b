from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import convnet, mlp, transformer
from tilewright.core.errors import ConfigError, VerifyError
from tilewright.driver.compile_graph import lower
from tilewright.driver.kernel.kernel import Kernel
from tilewright.driver.kernel.overrides import read_override
from tilewright.driver.options import make_options
from tilewright.ir.loop.text import print_func


def _kernels(model: object, overrides: Path | None = None) -> dict[str, Kernel]:
    return lower(model, make_options("x86-64-v3", overrides=overrides)).distinct_kernels


def _dump(folder: Path, kernels: dict[str, Kernel]) -> None:
    for name, kernel in kernels.items():
        (folder / f"{name}.loops").write_text(print_func(kernel.scheduled.func))


@pytest.mark.parametrize(
    "model",
    [mlp("N"), convnet(1), pytest.param(transformer("N", "S"), marks=pytest.mark.slow)],
    ids=lambda m: m.graph.name,
)
def test_dumped_kernels_come_back_the_same(model: object, tmp_path: Path) -> None:
    before = _kernels(model)
    _dump(tmp_path, before)
    after = _kernels(model, overrides=tmp_path)
    assert before.keys() == after.keys()
    for name, kernel in after.items():
        assert kernel.rule == "override"
        assert print_func(kernel.finalized) == print_func(before[name].finalized)
        assert kernel.layouts == before[name].layouts
        assert kernel.dim_params == before[name].dim_params


def test_kernels_without_a_file_stay(tmp_path: Path) -> None:
    before = _kernels(mlp("N"))
    name = next(iter(before))
    _dump(tmp_path, {name: before[name]})
    after = _kernels(mlp("N"), overrides=tmp_path)
    assert [k.name for k in after.values() if k.rule == "override"] == [name]


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    func = _kernels(mlp("N"))["softmax"].scheduled.func
    path = tmp_path / "softmax.loops"
    text = print_func(func)
    path.write_text(text.replace("@softmax", "@other"))
    with pytest.raises(ConfigError, match="name of function other") as caught:
        read_override(path, func)
    assert "func @softmax(" in caught.value.help
    path.write_text(text.replace("vectorize(", "unroll("))
    read_override(path, func)
    path.write_text(text.replace("parallel(", "parallel(1 + "))
    with pytest.raises(VerifyError, match=r"writes .*softmax.*cannot be shown to be below N"):
        read_override(path, func)
    path.write_text(text.replace("writes softmax[", "writes x0[", 1))
    with pytest.raises(VerifyError, match=r"softmax\.loops"):
        read_override(path, func)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot read"):
        read_override(path, func)
