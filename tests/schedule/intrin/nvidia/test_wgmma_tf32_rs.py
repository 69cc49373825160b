from __future__ import annotations

from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.wgmma import WARP_M, WGMMA_N, wgmma_names
from tilewright.schedule.intrin.table import INTRINSICS

# One instruction has K = 8, four of those a statement.
K, STEPS = 32, 4


def test_every_width_has_its_instruction() -> None:
    for columns in WGMMA_N:
        name = wgmma_names("f32", columns, "t", "t")[1]
        left, right, total = (tuple(int(str(d)) for d in p.shape) for p in pattern_of(name).params)
        assert (left, right, total) == ((K, WARP_M), (columns, K), (WARP_M, columns))
        row = INTRINSICS[name]
        assert row.llvm.count("wgmma.mma_async") == row.llvm.count("wgmma.wait_group") == STEPS
        assert row.llvm.count("ld.shared.b32") == 4 * STEPS


def test_registers_are_free_when_they_are_read_again() -> None:
    row = INTRINSICS[wgmma_names("f32", 64, "t", "t")[1]]
    in_flight = INTRINSICS[row.async_variant].llvm
    assert "wait_group.sync.aligned 0" not in in_flight
    waits = [part[0] for part in in_flight.split("wait_group.sync.aligned ")[1:]]
    assert all(int(left) < STEPS - 1 for left in waits)
    assert row.llvm.count("wait_group.sync.aligned 0") == 1


def test_lanes_of_a_warp_read_different_banks() -> None:
    for load in range(2):
        for half in range(2):
            words = set()
            for lane in range(32):
                k = lane % 4 + 4 * (lane // 16 ^ load)
                byte = (k * 128 + lane // 4 * 4 + 32 * half) ^ k << 4
                words.add(byte // 4 % 32)
            assert len(words) == 32
