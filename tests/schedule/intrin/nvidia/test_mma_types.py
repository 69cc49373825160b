from __future__ import annotations

from tests.for_each import for_each
from tilewright.schedule.intrin.nvidia.mma_types import (
    BYTE_KINDS,
    accumulator_type,
    kind_of,
    operand_bytes,
    operand_types,
    product_text,
    with_accumulator,
)


def test_a_kind_is_its_operands() -> None:
    assert list(BYTE_KINDS) == ["i8", "i8u8", "u8i8", "u8"]
    for kind in ("f16", "f32", *BYTE_KINDS):
        assert kind_of(*operand_types(kind)) == kind


@for_each(
    ("kind", "size", "total", "text"),
    [
        ("bf16", 2, "f32", "f32(a) * f32(b)"),
        ("f32", 4, "f32", "a * b"),
        ("u8i8", 1, "i32", "i32(a) * i32(b)"),
    ],
)
def test_types_of_a_kind(kind: str, size: int, total: str, text: str) -> None:
    assert (operand_bytes(kind), accumulator_type(kind)) == (size, total)
    assert product_text(kind, "a", "b") == text


def test_accumulators_of_f32_have_the_short_names() -> None:
    assert [with_accumulator("row", acc) for acc in ("f32", "i32")] == ["row", "row_i32"]
