"""The kinds of products that instructions on matrices compute: types of operands and of sums.

    bf16, f16     16 bits each, summed in f32
    f32           rounded to tf32, summed in f32
    i8, i8u8 ...  bytes, each operand signed or not, summed in i32

A kind is named by its operands, in one word where both are of one type.
"""

from __future__ import annotations

SIGNS = {"i8": "s8", "u8": "u8"}
"""What instructions call 8-bit integers."""
BYTE_KINDS = {f"{a}{b}" if a != b else a: (a, b) for a in SIGNS for b in SIGNS}
"""The kinds of products of 8-bit integers, and the types of both operands of each."""
SUMS = {"f32": ("float", "0.0", "0.0"), "i32": ("i32", "0", "0:i32")}
"""Types of sums, as LLVM calls them, and how each begins, for LLVM and in loops."""


def kind_of(left: str, right: str) -> str:
    """The kind of a product of two types."""
    return left if left == right else left + right


def operand_types(kind: str) -> tuple[str, str]:
    """The types of both operands of a kind."""
    return BYTE_KINDS.get(kind, (kind, kind))


def sum_type(kind: str) -> str:
    """The type of the sums of a kind of products."""
    return "i32" if kind in BYTE_KINDS else "f32"


def llvm_sum(total: str) -> str:
    """What LLVM calls a type of sums."""
    return SUMS[total][0]


def of_sums(word: str, total: str) -> str:
    """The name of what works on sums of a type; those of f32 need not be told."""
    return word if total == "f32" else f"{word}_{total}"


def operand_bytes(kind: str) -> int:
    """The bytes of an element of an operand."""
    return 1 if kind in BYTE_KINDS else 4 if kind == "f32" else 2


def product_text(kind: str, left: str, right: str) -> str:
    """The product of two elements, as it is summed."""
    total = sum_type(kind)
    own = [
        x if t == total else f"{total}({x})"
        for x, t in zip((left, right), operand_types(kind), strict=True)
    ]
    return " * ".join(own)
