from __future__ import annotations

import pytest

from tilewright.runtime.roofline import core_rates, measure
from tilewright.runtime.roofline.core_rates import measure_core
from tilewright.runtime.roofline.kernels import CHAINS, CYCLES
from tilewright.runtime.roofline.roofline import Level


def test_rates_follow_from_the_best_times(monkeypatch: pytest.MonkeyPatch) -> None:
    # a core of 2 GHz with 2 FMA a cycle, of 4 cycles each; every second time is disturbed
    steps = {"cycles": CYCLES, "multiply_add_f32": CHAINS / 2, "fma_chain": 4}
    kernels = {**{name: name for name in steps}, "read": "read"}
    disturbed = iter(range(100))

    def best(kernel: str, calls: object) -> float:
        return steps[kernel] / 2e9 * core_rates.SUM_STEPS * (1 + next(disturbed) // 3)

    class Engine:
        def close(self) -> None: ...

    levels = [Level(name, 1, rate * 2e9) for name, rate in zip("1234", (64, 32, 8, 4), strict=True)]
    monkeypatch.setattr(core_rates, "compile_roof_kernels", lambda chosen: (kernels, Engine()))
    monkeypatch.setattr(core_rates, "best_seconds", best)
    monkeypatch.setattr(core_rates, "measure_levels", lambda kernel, threads: levels)
    rates = measure_core(1e-6)
    assert rates.frequency == pytest.approx(2e9)
    assert rates.fma_per_cycle == pytest.approx(2)
    assert rates.fma_latency == pytest.approx(4)
    assert (rates.l1_bytes_per_cycle, rates.memory_bytes_per_cycle) == pytest.approx((64, 4))
    assert rates.fork_cycles == pytest.approx(2000)


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_rates, "ROUNDS", 1)
    for name, value in (("REPEATS", 2), ("MEMORY_BYTES", 1 << 20), ("READ_BYTES", 1 << 20)):
        monkeypatch.setattr(measure, name, value)
    monkeypatch.setattr(measure, "cache_sizes", lambda: {1: 1 << 14, 2: 1 << 16, 3: 1 << 18})
    # one chain waits for each FMA, several do not; other work on the machine may hide that for once
    attempts = (measure_core(0.0) for _ in range(5))
    rates = next((r for r in attempts if r.fma_latency > 1.5 / r.fma_per_cycle), None)
    assert rates is not None
    assert 2e8 < rates.frequency < 1e10
    assert rates.memory_bytes_per_cycle > 0
