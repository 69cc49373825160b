from __future__ import annotations

import json
from dataclasses import asdict

from tests.for_each import for_each
from tilewright.core.host.core_rates import CoreRates
from tilewright.target.calibration.cpu import BUILTIN, calibrated, read_costs
from tilewright.tune.features.op_counts import KINDS

RATES = CoreRates(3e9, 3.96, 3.1, 130.0, 41.3, 17.7, 4.2, 9100.0)


def test_costs_survive_json() -> None:
    for costs in (BUILTIN, calibrated(RATES)):
        assert read_costs(json.loads(json.dumps(asdict(costs)))) == costs


def test_every_kind_of_instruction_has_a_cost() -> None:
    assert {*asdict(BUILTIN.instruction_cycles)} == {*KINDS}


def test_chains_hide_the_latency() -> None:
    assert BUILTIN.fma_chains == 8
    assert calibrated(RATES).fma_chains == 12


def test_measured_rates_replace_the_built_in() -> None:
    costs = calibrated(RATES)
    assert (costs.fma_units, costs.fma_latency) == (4, 3)
    assert (costs.l2_bytes_per_cycle, costs.l3_bytes_per_cycle) == (40, 16)
    assert costs.memory_bytes_per_cycle == 4
    assert [cycles for cycles, _ in costs.line_fill] == [1.6, 4.0, 16.0]
    assert costs.line_fill_beyond_l2(in_l3=True) == costs.line_fill[1]
    assert costs.line_fill_beyond_l2(in_l3=False) == costs.line_fill[2]
    assert costs.instruction_cycles.fma == 0.25
    assert costs.fork_cycles == 8192
    assert costs.gemm_efficiency == BUILTIN.gemm_efficiency
    assert costs.stencil_chains == BUILTIN.stencil_chains


@for_each("noise", [0.97, 1.03])
def test_noise_does_not_change_the_costs(noise: float) -> None:
    quiet = CoreRates(3e9, 2, 4, 64, 32, 8, 4, 8192)
    near = CoreRates(*(value * noise for value in asdict(quiet).values()))
    assert calibrated(near) == calibrated(quiet)


def test_a_rate_below_one_byte_a_cycle() -> None:
    assert calibrated(CoreRates(3e9, 2, 4, 64, 32, 8, 0.3, 8192)).memory_bytes_per_cycle == 0.3125
