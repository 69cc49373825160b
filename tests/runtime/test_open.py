from __future__ import annotations

import pytest

from tests.models import mlp
from tilewright.core.errors import ConfigError
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.open import open_model


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
