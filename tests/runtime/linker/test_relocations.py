from __future__ import annotations

import struct

import pytest

from tests.for_each import for_each
from tilewright.runtime.linker.relocations import MACHINES

X86, ARM = MACHINES[62].kinds, MACHINES[183].kinds
PLACE = 0x7F00_1234_5678


def patched(kind: int, table: dict[int, object], word: int, place: int, target: int) -> int:
    code = bytearray(struct.pack("<QI", 0x1111111111111111, word) + b"\x22" * 8)
    table[kind].patch(code, 8, place, target)  # type: ignore[attr-defined]
    assert code[:8] == b"\x11" * 8
    assert code[12:] == b"\x22" * 8 or kind in (1, 257)
    return int(struct.unpack_from("<I", code, 8)[0])


def test_absolute() -> None:
    for table, kind in ((X86, 1), (ARM, 257)):
        code = bytearray(16)
        table[kind].patch(code, 4, 0, 0x1122334455667788)
        assert code == bytes(4) + struct.pack("<Q", 0x1122334455667788) + bytes(4)


@for_each(("table", "kind"), [(X86, 2), (X86, 4), (X86, 9), (X86, 42), (ARM, 261)])
def test_distance(table: dict[int, object], kind: int) -> None:
    assert patched(kind, table, 0, PLACE, PLACE + 100) == 100
    assert patched(kind, table, 0, PLACE, PLACE - 4) == 0xFFFFFFFC
    for far in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(OverflowError, match="too far"):
            patched(kind, table, 0, PLACE, PLACE + far)


def test_branches_of_arm() -> None:
    bl, b = 0x94000000, 0x14000000
    assert patched(283, ARM, bl, PLACE, PLACE + 8) == 0x94000002  # bl +8
    assert patched(283, ARM, bl, PLACE, PLACE - 4) == 0x97FFFFFF  # bl -4
    assert patched(282, ARM, b, PLACE, PLACE + 0x7FFFFFC) == 0x15FFFFFF
    with pytest.raises(OverflowError):
        patched(282, ARM, b, PLACE, PLACE + 0x8000000)


def test_pages_of_arm() -> None:
    adrp = 0x90000001  # adrp x1, 0
    assert patched(275, ARM, adrp, 0x1000, 0x1FFF) == 0x90000001
    assert patched(275, ARM, adrp, 0x1FFF, 0x2000) == 0xB0000001  # one page on
    assert patched(275, ARM, adrp, 0x1000, 0x5123) == 0x90000021  # four pages on
    assert patched(275, ARM, adrp, 0x3000, 0x2FFF) == 0xF0FFFFE1  # one page back
    with pytest.raises(OverflowError):
        patched(275, ARM, adrp, 0, 1 << 32)


@for_each(
    ("kind", "word", "want"),
    [
        (277, 0x91000021, 0x910AC021),  # add x1, x1, #0x2b0
        (278, 0x39400021, 0x394AC021),  # ldrb, in bytes
        (284, 0x79400021, 0x79456021),  # ldrh, in halves
        (285, 0xB9400021, 0xB942B021),  # ldr w, in words
        (286, 0xF9400021, 0xF9415821),  # ldr x, in double words
        (299, 0x3DC00020, 0x3DC0AC20),  # ldr q, in quadruple words
        (312, 0xF9400021, 0xF9415821),
    ],
)
def test_low_bits_of_arm(kind: int, word: int, want: int) -> None:
    assert patched(kind, ARM, word, 0, 0x7F00_0000_02B0) == want


@for_each("kind", [284, 285, 286, 299])
def test_a_place_between_units_is_refused(kind: int) -> None:
    with pytest.raises(OverflowError, match="not aligned"):
        patched(kind, ARM, 0, 0, 0x1001)


def test_stubs_are_followed_by_an_address() -> None:
    assert all(len(machine.stub) == 8 for machine in MACHINES.values())
    jump, distance = struct.unpack_from("<Hi", MACHINES[62].stub)
    assert (jump, distance) == (0x25FF, 2)  # six bytes long, two bytes before the address
