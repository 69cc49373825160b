from __future__ import annotations

import pytest

from tests.models import mlp
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel


@pytest.mark.parametrize(("target", "kind"), [("native", Executable), ("cuda", CudaExecutable)])
def test_all_models_say_the_same_of_themselves(target: str, kind: type[CompiledModel]) -> None:
    with open_model(compile_container(mlp("N"), make_options(target=target))) as model:
        assert type(model) is kind
        assert [str(p) for p in model.inputs] == ["x: f32[N, 16]"]
        assert model.counters["kernels"] >= 2
        assert "passes" in model.explain()
        assert kind.__name__ in repr(model)
