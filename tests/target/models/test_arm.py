from __future__ import annotations

from tilewright.target.host import _vector_unit
from tilewright.target.models.arm import ARM


def test_vector_units_follow_from_the_features() -> None:
    for target in ARM.values():
        names = {f.removeprefix("+") for f in target.features}
        assert _vector_unit(names) == (target.vector_bits, target.vector_registers)


def test_architecture() -> None:
    assert {target.architecture for target in ARM.values()} == {"aarch64"}
