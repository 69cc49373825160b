from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from tests.driver.compilation_key import compilation_key
from tests.models import mlp, save, save_external
from tilewright.core.disk_cache import DiskCache
from tilewright.core.errors import FrontendError
from tilewright.driver.cache_key import compiler_fingerprint
from tilewright.driver.options import CompileOptions
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.target.registry import resolve_cpu

X86, ARM = resolve_cpu("x86-64-v3"), resolve_cpu("aarch64")


@pytest.fixture
def store(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def test_everything_that_matters_is_in_the_key(tmp_path: Path, store: DiskCache) -> None:
    path = save(mlp("N"), tmp_path / "m.onnx")
    other = save(mlp("M"), tmp_path / "other.onnx")
    same = save(mlp("N"), tmp_path / "same.onnx")
    key = compilation_key(path, CompileOptions(X86), store)
    assert key == compilation_key(str(same), CompileOptions(X86), store)
    others = [
        compilation_key(other, CompileOptions(X86), store),
        compilation_key(path, CompileOptions(ARM), store),
        compilation_key(path, CompileOptions(X86, "f32", {"N": 1}), store),
        compilation_key(path, CompileOptions(X86, "f32", {"N": 2}), store),
        compilation_key(path, CompileOptions(X86, "bf16"), store),
        compilation_key(path, CompileOptions(X86, disable_passes=("winograd",)), store),
    ]
    assert len({key, *others}) == 7


def test_models_in_memory(store: DiskCache) -> None:
    assert compilation_key(mlp("N"), CompileOptions(X86), store) == compilation_key(
        mlp("N"), CompileOptions(X86), store
    )
    assert compilation_key(mlp("N"), CompileOptions(X86), store) != compilation_key(
        mlp(1), CompileOptions(X86), store
    )
    assert compilation_key(object(), CompileOptions(X86), store) is None


def test_models_as_bytes_and_as_graphs(store: DiskCache) -> None:
    data = mlp(2).SerializeToString()
    other = mlp(3).SerializeToString()
    for make in (bytes, import_onnx):
        keys = [compilation_key(make(d), CompileOptions(X86), store) for d in (data, data, other)]
        assert keys[0] is not None
        assert keys[0] == keys[1] != keys[2]


def test_the_weights_of_a_graph_are_in_its_key(store: DiskCache) -> None:
    first, second = mlp(2), mlp(2)
    weight = next(t for t in second.graph.initializer if len(t.dims) == 2)
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) + 1, weight.name))
    keys = {compilation_key(import_onnx(m), CompileOptions(X86), store) for m in (first, second)}
    assert len(keys) == 2


def test_external_data_is_in_the_key(tmp_path: Path, store: DiskCache) -> None:
    """The same model file in two folders is two models if the data beside it differs."""
    paths = []
    for name in "ab":
        (tmp_path / name).mkdir()
        paths.append(save_external(mlp("N"), tmp_path / name / "m.onnx"))
    first, second = (compilation_key(p, CompileOptions(X86), store) for p in paths)
    assert first == second
    data = tmp_path / "b" / "weights.bin"
    (np.fromfile(data, np.float32) + 1).tofile(data)
    assert compilation_key(paths[0], CompileOptions(X86), store) == first
    assert compilation_key(paths[1], CompileOptions(X86), store) != first
    data.unlink()
    assert compilation_key(paths[1], CompileOptions(X86), store) is None
    data.symlink_to(tmp_path / "a" / "weights.bin")
    assert compilation_key(paths[1], CompileOptions(X86), store) is None


def test_a_file_that_cannot_be_read(tmp_path: Path, store: DiskCache) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(FrontendError, match="cannot read"):
            compilation_key(path, CompileOptions(X86), store)


def test_the_compiler_is_one_version() -> None:
    assert len(compiler_fingerprint()) == 64
