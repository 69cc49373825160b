from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import tilewright as tw
from tests.tune.measure.models import write_job
from tilewright.core.config import override
from tilewright.core.dtypes import BF16
from tilewright.core.worker.process import WorkerProcess
from tilewright.runtime.binding import Port
from tilewright.tune.measure.evaluator import Effort, Sample
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import RUN_WORKER, described
from tilewright.tune.measure.run_worker import _arrays, _interleaved, run

FOUR = pytest.approx(4e-6)


@pytest.fixture
def request_(tmp_path: Path) -> dict[str, Any]:
    job = write_job(tmp_path)
    return {
        **described(job),
        "models": [str(tmp_path / "good.tw")],
        "effort": asdict(Effort(least=2, most=3, seconds=60, epsilon=0)),
        "incumbent": None,
    }


def test_one_model_as_the_evaluator_has_it(request_: dict[str, Any]) -> None:
    reply = run(request_)
    assert reply["reason"] == "repeats"
    assert reply["times"][0] == [FOUR] * len(reply["times"][0])
    assert run({**request_, "threads": 1})["reason"] == "repeats"
    hopeless = {**request_, "incumbent": 1e-7, "effort": asdict(Effort(most=10_000, seconds=60))}
    assert run(hopeless)["reason"] == "hopeless"


def test_several_models_are_interleaved(request_: dict[str, Any], tmp_path: Path) -> None:
    models = [str(tmp_path / f"{name}.tw") for name in ("good", "slow")]
    reply = run({**request_, "models": models, "rounds": [5, 8], "seconds": 60})
    fast, slow = reply["times"]
    assert fast == [FOUR] * len(fast)
    assert slow == [pytest.approx(5.003e-3)] * len(fast)
    assert len(fast) >= 5
    reply = run({**request_, "models": models, "rounds": [5, 8], "seconds": 0})
    assert [len(times) for times in reply["times"]] == [1, 1]


class Wavering:
    """A model whose times differ by so much from one another."""

    def __init__(self, seed: int, spread: float) -> None:
        self.rng, self.spread, self.runs = np.random.default_rng(seed), spread, 1

    def warm(self) -> None:
        pass

    def sample(self) -> Sample:
        return Sample(math.exp(self.rng.normal(0, self.spread)))


@pytest.mark.parametrize(
    ("spread", "fewest", "most"), [(0.001, 40, 40), (0.03, 60, 250), (1, 400, 400)]
)
def test_rounds_go_on_until_a_small_difference_would_show(
    spread: float, fewest: int, most: int
) -> None:
    watches: list[Any] = [Wavering(seed, spread) for seed in (0, 1)]
    taken = _interleaved(watches, (40, 400), 60)
    assert fewest <= len(taken[0]) == len(taken[1]) <= most


def test_every_model_is_checked(request_: dict[str, Any], tmp_path: Path) -> None:
    models = [str(tmp_path / f"{name}.tw") for name in ("good", "wrong")]
    reply = run({**request_, "models": models, "rounds": [5, 8], "seconds": 60})
    assert reply["failure"].startswith("wrong: y is off by")


def test_types_that_numpy_has_not_are_stored_as_bytes(tmp_path: Path) -> None:
    stored = np.arange(6).reshape(2, 3).astype(BF16.numpy)
    np.save(tmp_path / "x.npy", stored)
    (array,) = _arrays([str(tmp_path / "x.npy")], [Port("x", BF16, (2, 3))])
    assert array.dtype == BF16.numpy
    assert array.ctypes.data % 64 == 0
    assert (array.astype(float) == stored.astype(float)).all()


@pytest.mark.parametrize(("element", "kind"), [("float32", 1), ("float16", 10)])
@pytest.mark.parametrize("cold", [False, True])
def test_a_model_of_the_compiler(tmp_path: Path, element: str, kind: int, cold: bool) -> None:
    a, b = (helper.make_tensor_value_info(n, kind, s) for n, s in (("a", [7, 33]), ("b", [33, 5])))
    y = helper.make_tensor_value_info("y", kind, [7, 5])
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "g", [a, b], [y])
    opset = [helper.make_opsetid("", 17)]
    with override(cache=False):
        tw.compile(helper.make_model(graph, opset_imports=opset)).save(tmp_path / "model.tw")
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(shape).astype(element) for shape in ((7, 33), (33, 5))]
    product = (inputs[0].astype(float) @ inputs[1].astype(float)).astype(element)
    for name, array in zip("aby", [*inputs, product], strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    job = Job(
        tmp_path, "", (tmp_path / "a.npy", tmp_path / "b.npy"), (tmp_path / "y.npy",), 1, cold
    )
    request = {
        **described(job),
        "models": [str(tmp_path / "model.tw")],
        "effort": asdict(Effort(most=6)),
        "incumbent": None,
    }
    (times,) = run(request)["times"]
    assert 0 < min(times) <= max(times) < 1
    np.save(tmp_path / "y.npy", -product)
    assert run(request)["failure"].startswith("wrong: y is off by")


def test_as_a_process(request_: dict[str, Any], tmp_path: Path) -> None:
    with WorkerProcess(RUN_WORKER) as worker:
        assert worker.ask(request_, 30).reply["reason"] == "repeats"
        missing = {**request_, "models": [str(tmp_path / "missing.tw")]}
        assert worker.ask(missing, 30).kind == "refused"


def test_it_imports_no_compiler() -> None:
    program = (
        "import sys, tilewright.tune.measure.run_worker\n"
        "names = {name.split('.')[1] for name in sys.modules if name.startswith('tilewright.')}\n"
        "assert names == {'core', 'runtime', 'tune'}, names\n"
        "assert not {'llvmlite', 'onnx', 'islpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])
