from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.roles import TileFacts
from tilewright.ir.loop.interp.to_python import compile_func
from tilewright.ir.loop.nodes import Tile
from tilewright.ir.loop.text import parse_func

# Three k-tiles through two stages, copied by threads; then the result is turned around.
COPIES = """func @copies(A: f32[192], out C: f32[64]) {
  for b in grid(1) {
    alloc S: f32[1] @register
    alloc T: f32[128] @shared
    alloc R: f32[64] @shared
    for x in thread(64) { tile copy T[x : 1] <- A[x : 1] using "copy" }
    cp_async_commit
    for k in serial(3) {
      cp_async_wait 0
      barrier
      if k < 2 {
        for z in thread(64) {
          tile copy T[(k + 1) % 2 * 64 + z : 1] <- A[(k + 1) * 64 + z : 1] using "copy"
        }
      }
      cp_async_commit
      for y in thread(64) { S[0] += T[k % 2 * 64 + 63 - y] }
    }
    for v in thread(64) { R[v] = S[0] }
    barrier
    for w in thread(64) { C[w] = R[63 - w] }
  }
}"""
# The same by TMA, and multiplied asynchronously.
LOADS = """func @loads(A: f32[192], out C: f32[64]) {
  for b in grid(1) {
    alloc S: f32[1] @fragment
    alloc T: f32[128] @shared
    alloc M: i64[2] @shared
    mbarrier_init M[0 : 2] count 1
    barrier
    tile copy T[0 : 64] <- A[0 : 64], M[0] using "load"
    for k in serial(3) {
      mbarrier_wait M[k % 2] parity k // 2 % 2
      for w in warp(2) {
        tile mma.nn S[0 : 1] <- T[k % 2 * 64 : 64], T[k % 2 * 64 : 64] using "multiply"
      }
      for u in warp(2) { tile copy S[0 : 1] <- S[0 : 1] using "wait" }
      barrier
      if k < 2 {
        tile copy T[(k + 1) % 2 * 64 : 64] <- A[k * 64 + 64 : 64], M[(k + 1) % 2] using "load"
      }
    }
    for v in thread(64) { C[v] = S[0] }
  }
}"""
FACTS = {
    "copy": TileFacts(((1, 1), (1, 1)), copied=4),
    "load": TileFacts(((1, 64), (1, 64))),
    "multiply": TileFacts(((1, 64), (1, 64), (1, 1)), in_flight=1),
    "wait": TileFacts(((1, 1), (1, 1)), in_flight=0),
}


def _facts(tile: Tile) -> TileFacts:
    return FACTS[tile.intrinsic]


def _run(text: str) -> None:
    arrays = {"A": np.zeros(192, np.float32), "C": np.zeros(64, np.float32)}
    compile_func(parse_func(text), _facts).run(arrays, {})


def test_what_is_waited_for_is_read() -> None:
    _run(COPIES)
    _run(LOADS)


@for_each(
    ("before", "after", "message"),
    [
        ("      cp_async_wait 0\n", "", "reads 'T' while a copy writes it"),
        ("cp_async_wait 0", "cp_async_wait 1", "reads 'T' while a copy writes it"),
        ("      cp_async_commit\n", "", "reads 'T' while a copy writes it"),
        ("0\n      barrier\n", "0\n", "reads 'T' while another writes it"),
        ("T[(k + 1) % 2 * 64 + z", "T[z", "reads 'T' while a copy writes it"),
        ("    barrier\n    for w", "    for w", "reads 'R' while another writes it"),
    ],
    ids=["no wait", "a group too few", "no group", "no barrier", "stages", "no last barrier"],
)
def test_faults_of_copies_are_found(before: str, after: str, message: str) -> None:
    assert COPIES.count(before) == 1
    with pytest.raises(ExecutionError, match=message):
        _run(COPIES.replace(before, after))


def test_a_copy_waits_for_readers() -> None:
    """It takes the stage that others still read."""
    copy = "tile copy T[(k + 1) % 2 * 64 + z"
    with pytest.raises(ExecutionError, match="writes 'T' while another reads it"):
        _run(
            COPIES.replace("for z in", "for q in thread(64) { S[0] += T[q] }\n for z in").replace(
                copy, "tile copy T[(z + 1) % 64"
            )
        )


@for_each(
    ("before", "after", "message"),
    [
        ("mbarrier_wait M[k % 2] parity k // 2 % 2", "", "reads 'T' while a copy writes it"),
        ("parity k // 2 % 2", "parity (k // 2 + 1) % 2", "waits for parity 1 of M.0. for ever"),
        ("M[0] using", "M[1] using", "waits for parity 0 of M.0. for ever"),
        ("M[0 : 2]", "M[0 : 1]", "M.1. is not initialized"),
        ("    barrier\n    tile", "    tile", "another may not have initialized"),
        ("      barrier\n      if", "      if", "writes 'T' while"),
        (
            'for u in warp(2) { tile copy S[0 : 1] <- S[0 : 1] using "wait" }',
            "",
            "accesses S, which a product changes|while a product reads it",
        ),
    ],
    ids=[
        *("no wait", "phase", "another mbarrier", "not initialized", "nobody knows"),
        *("no barrier", "no wait for products"),
    ],
)
def test_faults_of_loads_are_found(before: str, after: str, message: str) -> None:
    assert LOADS.count(before) == 1
    with pytest.raises(ExecutionError, match=message):
        _run(LOADS.replace(before, after))
