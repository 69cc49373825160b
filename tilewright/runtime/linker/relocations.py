"""Relocations: for each type, how the address of a symbol is written into code.

The types are those that LLVM emits for position-independent code of the small code model; their
numbers are those of the ELF supplements of x86-64 and AArch64. `S` there is the address of the
symbol, `P` that of the relocated field, `A` the addend.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

_U32, _I32, _I64 = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<q")

Patch = Callable[[bytearray, int, int, int], None]
"""`patch(code, offset, place, target)` writes a reference to `target` (S + A) at `offset`, whose
address will be `place` (P). `OverflowError` where the distance does not fit."""


@dataclass(frozen=True)
class RelocationKind:
    """One type of relocation.

    `via` says what it refers to: the symbol itself (""), a PLT `stub` that jumps there if the
    symbol is undefined, or the GOT `slot` that holds its address.
    """

    patch: Patch
    via: str = ""


@dataclass(frozen=True)
class Machine:
    """An architecture: its relocations by number, and a PLT stub, which its target follows."""

    name: str
    kinds: dict[int, RelocationKind]
    stub: bytes


def _absolute(code: bytearray, offset: int, place: int, target: int) -> None:
    _I64.pack_into(code, offset, target)


def _distance(code: bytearray, offset: int, place: int, target: int) -> None:
    _I32.pack_into(code, offset, _fit(target - place, 32))


def _branch26(code: bytearray, offset: int, place: int, target: int) -> None:
    words = _fit(target - place, 28) >> 2
    _insert(code, offset, 0x03FFFFFF, words & 0x03FFFFFF)


def _page21(code: bytearray, offset: int, place: int, target: int) -> None:
    pages = _fit((target >> 12) - (place >> 12), 21)
    _insert(code, offset, 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _low12(shift: int) -> Patch:
    """The last twelve bits of an address, in units of 1 << shift bytes."""

    def patch(code: bytearray, offset: int, place: int, target: int) -> None:
        low = target & 0xFFF
        if low & ((1 << shift) - 1):
            raise OverflowError("a place that is not aligned")
        _insert(code, offset, 0xFFF << 10, low >> shift << 10)

    return patch


def _insert(code: bytearray, offset: int, mask: int, bits: int) -> None:
    (word,) = _U32.unpack_from(code, offset)
    _U32.pack_into(code, offset, word & ~mask | bits)


def _fit(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise OverflowError("a place that is too far away")
    return value


MACHINES = {
    62: Machine(
        "x86_64",
        {
            1: RelocationKind(_absolute),  # R_X86_64_64
            2: RelocationKind(_distance),  # PC32
            4: RelocationKind(_distance, "stub"),  # PLT32
            9: RelocationKind(_distance, "slot"),  # GOTPCREL
            41: RelocationKind(_distance, "slot"),  # GOTPCRELX
            42: RelocationKind(_distance, "slot"),  # REX_GOTPCRELX
        },
        bytes.fromhex("ff2502000000 0f0b"),  # jmp [rip + 2]; ud2
    ),
    183: Machine(
        "aarch64",
        {
            257: RelocationKind(_absolute),  # R_AARCH64_ABS64
            261: RelocationKind(_distance),  # PREL32
            275: RelocationKind(_page21),  # ADR_PREL_PG_HI21
            277: RelocationKind(_low12(0)),  # ADD_ABS_LO12_NC
            278: RelocationKind(_low12(0)),  # LDST8_ABS_LO12_NC
            282: RelocationKind(_branch26, "stub"),  # JUMP26
            283: RelocationKind(_branch26, "stub"),  # CALL26
            284: RelocationKind(_low12(1)),  # LDST16_ABS_LO12_NC
            285: RelocationKind(_low12(2)),  # LDST32_ABS_LO12_NC
            286: RelocationKind(_low12(3)),  # LDST64_ABS_LO12_NC
            299: RelocationKind(_low12(4)),  # LDST128_ABS_LO12_NC
            311: RelocationKind(_page21, "slot"),  # ADR_GOT_PAGE
            312: RelocationKind(_low12(3), "slot"),  # LD64_GOT_LO12_NC
        },
        bytes.fromhex("50000058 00021fd6"),  # ldr x16, [pc + 8]; br x16
    ),
}
"""The architectures by their ELF machine number."""
