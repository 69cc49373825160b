from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.agents import LaunchState, Mbarrier
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import parse_func

# One role loads rows of A, the other adds them up; two rows are under way.
RING = """func @sums(A: f32[6, 32], out C: f32[2, 32]) {
  for b in grid(2) {
    alloc T: f32[2, 32] @shared
    alloc full: i64[2] @shared
    alloc empty: i64[2] @shared
    mbarrier_init full[0 : 2] count 1
    mbarrier_init empty[0 : 2] count 1
    barrier
    roles {
      consumer warps(1) {
        alloc S: f32[1] @register
        for x in thread(32) { S[0] = 0.0 }
        for k in serial(3) {
          mbarrier_wait full[k % 2] parity k // 2 % 2
          for y in thread(32) { S[0] += T[k % 2, y] }
          mbarrier_arrive empty[k % 2]
        }
        for z in thread(32) { C[b, z] = S[0] }
      }
      producer warps(1) {
        for one in thread(1) {
          for n in serial(3) {
            mbarrier_wait empty[n % 2] parity (n // 2 + 1) % 2
            tile copy T[n % 2, 0 : 32] <- A[b * 3 + n, 0 : 32], full[n % 2]
          }
        }
      }
    }
  }
}"""

# Who runs too early either races, or passes others so far that all wait for ever.
EITHER = "interp.race or interp.deadlock"

# Every block but the first adds what the block before has written.
CHAIN = """func @chain(A: f32[4, 32], out C: f32[4, 32], out F: i32[4]) {
  for b in grid(4) {
    roles {
      worker warps(1) {
        if 0 < b {
          for w in warp(1) { await F[b - 1] count 1 }
        }
        for x in thread(32) { C[b, x] = A[b, x] + select(0 < b, C[max(b - 1, 0), x], 0.0) }
        for v in warp(1) { signal F[b] }
      }
    }
  }
}"""

# Two groups take turns at one buffer.
TURNS = """func @turns(A: f32[2, 32], out C: f32[32]) {
  for b in grid(1) {
    alloc order: i64[2] @shared
    mbarrier_init order[0 : 2] count 1
    barrier
    roles {
      worker warps(2) {
        for g in group(2) {
          mbarrier_wait order[g] parity select(g == 0, 1, 0)
          for x in thread(32) { C[x] = A[g, x] + select(g == 0, 0.0, C[x]) }
          mbarrier_arrive order[(g + 1) % 2]
        }
      }
    }
  }
}"""


def _ring(text: str = RING) -> np.ndarray:
    a, c = np.arange(192, dtype=np.float32).reshape(6, 32), np.zeros((2, 32), np.float32)
    run_func(parse_func(text), {"A": a, "C": c})
    return c - a.reshape(2, 3, 32).sum(axis=1)


def test_roles_run_at_once_and_wait_for_each_other() -> None:
    assert not _ring().any()


@for_each(
    ("before", "after", "code"),
    [
        # Nobody waits for the copy.
        ("mbarrier_wait full[k % 2] parity k // 2 % 2", "", EITHER),
        # The copy does not wait for the reader.
        ("mbarrier_wait empty[n % 2] parity (n // 2 + 1) % 2", "", EITHER),
        ("mbarrier_arrive empty[k % 2]", "", "interp.deadlock"),
        ("parity k // 2 % 2", "parity (k // 2 + 1) % 2", EITHER),
        ("parity (n // 2 + 1) % 2", "parity n // 2 % 2", "interp.deadlock"),
        ("full[0 : 2] count 1", "full[0 : 2] count 2", "interp.deadlock"),
        ("full[0 : 2] count 1", "full[0 : 1] count 1", "interp.mbarrier"),
        # One stage too few.
        ("tile copy T[n % 2, 0", "tile copy T[0, 0", "interp.race"),
        ("consumer warps(1)", "consumer warps(2)", "interp.mbarrier"),
    ],
    ids=[
        *("no wait for a copy", "no wait for readers", "no arrival", "phase of readers"),
        *("phase of copies", "arrivals", "not initialized", "stages", "warps"),
    ],
)
def test_faults_are_found(before: str, after: str, code: str) -> None:
    assert before in RING
    with pytest.raises(ExecutionError) as error:
        _ring(RING.replace(before, after))
    assert error.value.code in code.split(" or ")


def test_the_mbarrier_of_a_copy_counts_for_that_copy_only() -> None:
    """Whoever waits for one copy does not know of another that was started before."""
    text = RING.replace(
        "tile copy T[n % 2, 0 : 32] <- A[b * 3 + n, 0 : 32], full[n % 2]",
        "tile copy T[n % 2, 0 : 32] <- A[b * 3 + n, 0 : 32], full[(n + 1) % 2]",
    ).replace("full[k % 2] parity k // 2 % 2", "full[(k + 1) % 2] parity k // 2 % 2")
    assert not _ring(text).any()
    with pytest.raises(ExecutionError, match=r"reads 'T' while a copy by producer .* writes it"):
        _ring(text.replace("full[(k + 1) % 2] parity", "full[k % 2] parity"))


def _chain(text: str) -> np.ndarray:
    a, c = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    run_func(parse_func(text), {"A": a, "C": c, "F": np.zeros(4, np.int32)})
    return c


def test_blocks_wait_for_flags_of_others() -> None:
    np.testing.assert_array_equal(_chain(CHAIN)[:, 0], [1, 2, 3, 4])


@for_each(
    ("before", "after", "message"),
    [
        ("for w in warp(1) { await F[b - 1] count 1 }", "", "worker of block 1 reads 'C' while"),
        ("await F[b - 1] count 1", "await F[b - 1] count 2", r"awaits F\[0\], which is 1, not 2"),
        ("signal F[b]", "signal F[0]", r"awaits F\[1\], which is 0, not 1"),
    ],
    ids=["no await", "count", "another flag"],
)
def test_faults_between_blocks_are_found(before: str, after: str, message: str) -> None:
    assert before in CHAIN
    with pytest.raises(ExecutionError, match=message):
        _chain(CHAIN.replace(before, after))


def _turns(text: str) -> np.ndarray:
    c = np.zeros(32, np.float32)
    run_func(parse_func(text), {"A": np.ones((2, 32), np.float32), "C": c})
    return c


def test_groups_of_a_role_run_at_once() -> None:
    np.testing.assert_array_equal(_turns(TURNS), 2)
    with pytest.raises(ExecutionError, match=r"g 1 of worker of block 0 reads 'C' while g 0 of"):
        _turns(TURNS.replace("mbarrier_wait order[g] parity select(g == 0, 1, 0)", ""))


def test_a_phase_completes_with_its_arrivals() -> None:
    mbarrier = Mbarrier("m[0]", 2)
    mbarrier.arrive(1, {3: 1})
    assert (mbarrier.phase, mbarrier.completed) == (0, {})
    mbarrier.arrive(1, {4: 2})
    assert (mbarrier.phase, mbarrier.completed) == (1, {3: 1, 4: 2})
    with pytest.raises(ExecutionError, match=r"3 arrive at m\[0\], whose phases have 2"):
        mbarrier.arrive(3, {})


def test_agents_have_numbers() -> None:
    launch = LaunchState()
    assert [launch.agent("a"), launch.agent("b")] == [0, 1]
