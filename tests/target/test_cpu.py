from __future__ import annotations

from tests.for_each import for_each
from tilewright.target.registry import CPUS


def test_lanes() -> None:
    target = CPUS["x86-64-v3"]
    assert [target.lanes(bits) for bits in (64, 32, 8, 1, 10_000)] == [4, 8, 32, 32, 1]


def test_l1_ways() -> None:
    assert CPUS["sapphirerapids"].l1_ways == 12
    assert CPUS["neoverse-n1"].l1_ways == 4


@for_each(
    ("name", "unit", "rounds"),
    [
        ("sapphirerapids", "amx", True),
        ("neoverse-v1", "dot", True),
        ("x86-64-v4", "", False),
        ("aarch64", "", False),
    ],
)
def test_bf16_units(name: str, unit: str, rounds: bool) -> None:
    target = CPUS[name]
    assert (target.bf16_gemm, target.rounds_to_bf16) == (unit, rounds)
