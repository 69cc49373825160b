from __future__ import annotations

from enum import IntEnum

import onnxruntime as theirs

from tests.for_each import for_each
from tilewright.compat.onnxruntime import enums

NAMES = [n for n, kind in vars(enums).items() if isinstance(kind, type) and n[0] in "GEO"]
NAMES.remove("Enum") if "Enum" in NAMES else None


@for_each("name", NAMES)
def test_members_numbers_and_texts_are_theirs(name: str) -> None:
    ours: type[IntEnum] = getattr(enums, name)
    other = getattr(theirs, name)
    assert list(ours.__members__) == list(other.__members__)
    for member in other.__members__:
        a, b = getattr(ours, member), getattr(other, member)
        assert int(a) == int(b) == a
        assert (str(a), repr(a), a.name) == (str(b), repr(b), b.name)


def test_there_are_some() -> None:
    assert {"GraphOptimizationLevel", "ExecutionMode", "OrtDeviceVendorId"} <= set(NAMES)
