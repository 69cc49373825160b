from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.driver.compilation_key import compilation_key
from tilewright.core.config import override
from tilewright.core.disk_cache import open_cache
from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError
from tilewright.core.host.core_rates import CoreRates
from tilewright.driver import calibrate as module
from tilewright.driver.calibrate import calibrate, fork_seconds, reset_calibration
from tilewright.driver.compile import compile
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.cpu.executable import Executable
from tilewright.target.calibration.cpu import BUILTIN
from tilewright.target.calibration.store import read_calibration
from tilewright.target.host import host
from tilewright.target.registry import resolve_target

RATES = CoreRates(3e9, 1.0, 3.0, 100.0, 20.0, 5.0, 2.0, 20_000.0)


@pytest.fixture
def own_cache(tmp_path: Path) -> Iterator[None]:
    with override(cache=True, cache_dir=tmp_path):
        host.cache_clear()
        yield
    host.cache_clear()


def _product() -> Graph:
    g = GraphBuilder("product")
    x, y = (g.input(name, tensor(F32, 48, 48)) for name in ("x", "y"))
    return g.graph(g.add("matmul", x, y))


def _key() -> str | None:
    store = open_cache()
    assert store is not None
    return compilation_key(_product(), make_options(), store)


@pytest.mark.usefixtures("own_cache")
def test_a_calibration_changes_native_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_core", lambda fork: RATES)
    monkeypatch.setattr(module, "fork_seconds", lambda: 0.0)
    before, named = host(), resolve_target("x86-64-v3")
    assert before.costs == BUILTIN
    assert calibrate(others=lambda: 0.0) == RATES
    after = host()
    assert (after.costs.fma_units, after.costs.fma_chains) == (1, 3)
    assert after.features == before.features
    assert resolve_target("x86-64-v3") == named
    assert repr(after) != repr(before)
    assert reset_calibration()
    assert host() == before


@pytest.mark.usefixtures("own_cache")
def test_figures_of_a_busy_machine_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_core", lambda fork: RATES)
    monkeypatch.setattr(module, "fork_seconds", lambda: 0.0)
    counts = itertools.count(0.0, 1e3)  # others use a thousand seconds between two looks

    def others() -> float:
        return next(counts)

    with pytest.raises(ConfigError, match="other processes used") as caught:
        calibrate(others=others)
    assert caught.value.code == "calibration.busy"
    assert "--force" in caught.value.help
    assert read_calibration() is None
    assert host().costs == BUILTIN
    assert calibrate(force=True, others=others) == RATES
    assert read_calibration() == RATES


@pytest.mark.usefixtures("own_cache")
def test_models_compiled_with_a_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measure_core", lambda fork: RATES)
    monkeypatch.setattr(module, "fork_seconds", lambda: 0.0)
    x = np.random.default_rng(0).standard_normal((48, 48)).astype(np.float32)

    def run() -> np.ndarray:
        with compile(_product()) as model:
            assert isinstance(model, Executable)
            return np.array(model(x, x))

    built_in = _key()
    np.testing.assert_allclose(run(), x @ x, rtol=1e-4, atol=1e-4)
    calibrate(others=lambda: 0.0)
    assert _key() != built_in
    np.testing.assert_allclose(run(), x @ x, rtol=1e-4, atol=1e-4)
    reset_calibration()
    assert _key() == built_in


class _Model:
    """Takes 5 us a call, and 8 us of work that threads share, which take 2 us to start."""

    def __init__(self, size: int, now: list[float]) -> None:
        self.size, self.now, self.threads = size, now, 1

    def set_threads(self, threads: int) -> None:
        self.threads = threads

    def __call__(self, x: object) -> None:
        work = 8e-6 / self.threads if self.size > 1 else 0.0
        self.now[0] += 5e-6 + work + (2e-6 if self.threads > 1 else 0.0)

    def __enter__(self) -> _Model:
        return self

    def __exit__(self, *error: object) -> None: ...


def test_fork_and_join(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "_relu", lambda size: _Model(size, now))
    monkeypatch.setattr(module, "usable_cores", lambda: 4)
    assert fork_seconds(lambda: now[0]) == pytest.approx(2e-6)


def test_one_core_never_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "usable_cores", lambda: 1)
    monkeypatch.setattr(module, "_relu", lambda size: pytest.fail("compiled"))
    assert fork_seconds() == 0.0
