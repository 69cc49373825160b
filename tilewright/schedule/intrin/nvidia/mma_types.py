"""The operand and accumulator types of tensor-core instructions.

    bf16, f16     16 bits each, accumulated in f32
    f32           rounded to TF32, accumulated in f32
    i8, i8u8 ...  bytes, each operand signed or unsigned, accumulated in i32

A kind is named by its operand types, in one word where both are the same.
"""

from __future__ import annotations

SIGNS = {"i8": "s8", "u8": "u8"}
"""PTX names of 8-bit integers."""
BYTE_KINDS = {f"{a}{b}" if a != b else a: (a, b) for a in SIGNS for b in SIGNS}
"""The kinds with 8-bit integers, and both operand types of each."""
ACCUMULATORS = {"f32": ("float", "0.0", "0.0"), "i32": ("i32", "0", "0:i32")}
"""Accumulator types: their LLVM type, and zero in LLVM and in the loop IR."""


def kind_of(left: str, right: str) -> str:
    """The kind of two operand types."""
    return left if left == right else left + right


def operand_types(kind: str) -> tuple[str, str]:
    """The types of both operands of a kind."""
    return BYTE_KINDS.get(kind, (kind, kind))


def accumulator_type(kind: str) -> str:
    """The accumulator type of a kind."""
    return "i32" if kind in BYTE_KINDS else "f32"


def llvm_accumulator(acc: str) -> str:
    """The LLVM type of an accumulator type."""
    return ACCUMULATORS[acc][0]


def with_accumulator(word: str, acc: str) -> str:
    """The name of an intrinsic on accumulators of a type; f32 is left out."""
    return word if acc == "f32" else f"{word}_{acc}"


def operand_bytes(kind: str) -> int:
    """The bytes of an operand element."""
    return 1 if kind in BYTE_KINDS else 4 if kind == "f32" else 2


def product_text(kind: str, left: str, right: str) -> str:
    """The product of two elements in the accumulator type, as loop IR."""
    acc = accumulator_type(kind)
    own = [
        x if t == acc else f"{acc}({x})"
        for x, t in zip((left, right), operand_types(kind), strict=True)
    ]
    return " * ".join(own)
