from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.errors import ExecutionError
from tilewright.ir.loop.interp.roles import TileFacts, has_roles, shared_among_agents
from tilewright.ir.loop.interp.to_python import compile_func
from tilewright.ir.loop.nodes import Tile
from tilewright.ir.loop.text import parse_func

# Products of flat tiles, which have no meaning here but for what they touch.
PRODUCTS = """func @products(A: f16[2048], out C: f32[128]) {
  for b in grid(1) {
    alloc T: f16[2048] @shared
    alloc full: i64[2] @shared
    alloc empty: i64[2] @shared
    mbarrier_init full[0 : 2] count 1
    mbarrier_init empty[0 : 2] count 4
    barrier
    roles {
      consumer warps(4) {
        alloc S: f32[1024] @fragment
        for k in serial(4) {
          mbarrier_wait full[k % 2] parity k // 2 % 2
          for w in warp(4) { tile mma.nn S[0 : 64] <- T[k % 2 * 1024 : 64] using "multiply" }
          mbarrier_arrive empty[(k + 1) % 2] ? 0 < k
        }
        for v in warp(4) { tile copy S[0 : 64] <- S[0 : 64] using "wait" }
        for x in thread(128) { C[x] = S[0] }
      }
      producer warps(1) {
        for one in thread(1) {
          for n in serial(4) {
            mbarrier_wait empty[n % 2] parity (n // 2 + 1) % 2
            tile copy T[n % 2 * 1024 : 64] <- A[0 : 64], full[n % 2] using "load"
          }
        }
      }
    }
  }
}"""
FACTS = {
    "multiply": TileFacts(((16, 64), (16, 64)), in_flight=1),
    "wait": TileFacts(((16, 64), (16, 64)), in_flight=0),
    "load": TileFacts(((16, 64), (16, 64))),
}


def _facts(tile: Tile) -> TileFacts:
    return FACTS[tile.intrinsic]


def _run(text: str) -> None:
    arrays = {"A": np.zeros(2048, np.float16), "C": np.zeros(128, np.float32)}
    compile_func(parse_func(text), _facts).run(arrays, {})


def test_a_product_in_flight_reads_its_operands_until_it_is_waited_for() -> None:
    _run(PRODUCTS)
    with pytest.raises(ExecutionError, match="writes 'T' while consumer of block 0 reads it"):
        _run(PRODUCTS.replace("empty[(k + 1) % 2] ? 0 < k", "empty[k % 2]"))


def test_nobody_reads_accumulators_in_flight() -> None:
    wait = 'for v in warp(4) { tile copy S[0 : 64] <- S[0 : 64] using "wait" }'
    assert wait in PRODUCTS
    with pytest.raises(ExecutionError, match="accesses S, which a product in flight changes"):
        _run(PRODUCTS.replace(wait, ""))


def test_mbarriers_and_flags_and_private_buffers_are_no_shared_memory() -> None:
    func = parse_func(PRODUCTS)
    assert has_roles(func.body)
    assert shared_among_agents(func) == {"T", "C"}
