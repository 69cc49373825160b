from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.models import mlp
from tests.runtime.fake_model import WEIGHTS, arguments, container, expected
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.load import load, open_model

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Executable(container()) as model:
        return model.save(tmp_path_factory.mktemp("saved") / "model.tw")


def test_a_loaded_model_is_the_saved_one(path: Path) -> None:
    x, z = arguments(33)
    with load(path) as model:
        assert model.explain() == "two kernels"
        for got, want in zip(model(x, z), expected(x, z), strict=True):
            np.testing.assert_array_equal(got, want)


def test_saving_again_gives_the_same_file(path: Path, tmp_path: Path) -> None:
    with load(path) as model:
        again = model.save(tmp_path / "again.tw")
        assert again.read_bytes() == path.read_bytes()
        # even over the file that is mapped: the model goes on with the old one
        model.save(again)
        assert model(*arguments(3))[0].shape == (3, 3)


ALONE = """
import sys
import numpy as np
from tilewright.runtime.load import load

model = load(sys.argv[1])
x, z = np.ones((2, 3), np.float32), np.zeros(2, np.float32)
print(*model(x, z)[0][0])
rooms = {".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("tilewright.")}
assert rooms == {"tilewright.core", "tilewright.runtime"}, rooms
others = {"onnx", "islpy", "rich", "click", "torch", "llvmlite", "ml_dtypes"} & set(sys.modules)
assert not others, others
"""


def test_loading_imports_no_compiler(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.float32(done.stdout.split()), 1 + WEIGHTS)


def test_truncated_models_do_not_load(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    for size in (0, 4, 100, 4096, len(data) // 2, len(data) - 1):
        short = tmp_path / "short.tw"
        short.write_bytes(data[:size])
        with pytest.raises(ExecutionError, match=r"short\.tw"):
            load(short)


def test_a_model_without_a_kind_is_one_for_a_cpu() -> None:
    container = compile_container(mlp(1), make_options())
    container.manifest["target"].pop("kind")
    with open_model(container, threads=1) as model:
        assert isinstance(model, Executable)
        assert model.threads == 1


def test_a_gpu_takes_no_threads_of_the_processor() -> None:
    container = compile_container(mlp(1), make_options(target="cuda"))
    with pytest.raises(ConfigError, match="2 threads"):
        open_model(container, threads=2)
    assert open_model(container).threads == 0
