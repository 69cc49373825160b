from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.for_each import for_each
from tilewright.ir.loop.interp.run import run_func
from tilewright.schedule.intrin.cpu.bf16_dot import BF16_PAIRS
from tilewright.schedule.intrin.match import pattern_of
from tilewright.target.registry import CPUS


@for_each("name", BF16_PAIRS)
def test_both_products_of_a_pair_are_added(name: str) -> None:
    lanes = int(str(pattern_of(name).params[-1].shape[0]))
    rng = np.random.default_rng(lanes)
    a, b = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((2,), (lanes, 2)))
    c = rng.standard_normal(lanes).astype(np.float32)
    expected = c + b.astype(np.float32) @ a.astype(np.float32)
    run_func(pattern_of(name), {"a": a, "b": b, "c": c})
    np.testing.assert_allclose(c, expected, rtol=1e-6, atol=1e-6)


@for_each(
    ("target", "name"),
    [("sapphirerapids", "vdpbf16ps"), ("neoverse-v1", "bfdot"), ("x86-64-v4", ""), ("aarch64", "")],
)
def test_which_machine_has_which(target: str, name: str) -> None:
    machine = CPUS[target]
    found = [
        n for n, row in BF16_PAIRS.items() if row.available(machine.architecture, machine.features)
    ]
    assert found == ([name] if name else [])
