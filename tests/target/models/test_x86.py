from __future__ import annotations

from tilewright.target.host import _vector_unit
from tilewright.target.models.x86 import X86


def test_each_level_has_all_features_of_the_one_below() -> None:
    levels = [set(X86[f"x86-64-v{n}"].features) for n in (2, 3, 4)]
    assert levels[0] < levels[1] < levels[2] < set(X86["sapphirerapids"].features)


def test_vector_units_follow_from_the_features() -> None:
    for target in X86.values():
        names = {f.removeprefix("+") for f in target.features}
        unit = (target.vector_bits, target.vector_registers)
        assert _vector_unit(names | {"sse2"}) == unit


def test_architecture() -> None:
    assert {target.architecture for target in X86.values()} == {"x86_64"}
