from __future__ import annotations

import re

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.place_barriers import place_barriers
from tilewright.finalize.gpu.software_pipeline import WORKING_REGISTERS, software_pipeline
from tilewright.ir.loop.nodes import CpAsyncCommit, CpAsyncWait, Func, Tile
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import statements

SUMS = """func @sums(A: f32[N * 64 + 3], out C: f32[64]) %s {
  for b in grid(1) {
    alloc S: f32[1] @register
    for x in thread(64) { S[0] = 0.0 }
    for k in serial(N) {pipeline_stages=3} {
      alloc T: f32[64] @shared
      for z in thread(16) { %s }
      for y in thread(64) { S[0] += T[63 - y] }
    }
    for v in thread(64) { C[v] = S[0] }
  }
}"""
COPY = "T[ramp(z * 4, 1, 4)] = A[ramp(k * 64 + z * 4, 1, 4)]"
MASKED = "T[ramp(z * 4, 1, 4)] = A[ramp(k * 64 + z * 4, 1, 4) ? ramp(k * 64 + z * 4, 1, 4) < 72]"


def staged(copy: str = COPY, notes: str = "{aligned=16}", registers: int = 0) -> tuple[Func, Func]:
    """Before and after; with `registers` for copies on a machine without `cp.async`."""
    func = parse_func(SUMS % (notes, copy))
    all_registers = registers + WORKING_REGISTERS
    return func, software_pipeline(place_barriers(func), all_registers, cp_async=not registers)


@for_each("steps", [0, 1, 2, 3, 7])
@for_each("notes", ["{aligned=16}", ""])
def test_meaning(steps: int, notes: str) -> None:
    before, after = staged(notes=notes)
    sizes = {"N": steps}
    arrays = sample(before, sizes)
    expected = run(before, arrays, sizes)["C"].copy()
    if notes:  # flat tiles are for the emitter alone
        assert any(isinstance(s, Tile) for _, s in statements(after.body))
    else:
        np.testing.assert_allclose(run(after, arrays, sizes)["C"], expected, rtol=1e-6)


def test_one_barrier_a_step() -> None:
    _, after = staged()
    text = print_func(after)
    loop = text[text.index("for k in") :]
    assert loop.count(" barrier") == 1
    assert [s.pending for _, s in statements(after.body) if isinstance(s, CpAsyncWait)] == [1]
    assert sum(isinstance(s, CpAsyncCommit) for _, s in statements(after.body)) == 2
    assert "alloc T: f32[192] @shared" in text


def test_pieces_are_copied_while_threads_go_on() -> None:
    assert 'using "cp_async_16"' in print_func(staged()[1])
    assert "cp_async_16" not in print_func(staged(notes="")[1])
    odd = COPY.replace("k * 64 + z * 4", "k * 64 + z * 4 + 1")
    assert "cp_async_16" not in print_func(staged(odd)[1])


WORD = "for w in serial(4) { T[z * 4 + w] = A[k * 64 + z * 4 + w ? k * 64 + z * 4 + w < 70] }"


@for_each("steps", [0, 1, 2, 3, 7])
def test_words_are_copied_so_wherever_they_begin(steps: int) -> None:
    before, after = staged(WORD, notes="")
    assert 'using "cp_async_4_padded"' in print_func(after)
    arrays = sample(before, {"N": steps})
    expected = run(before, arrays, {"N": steps})["C"].copy()
    np.testing.assert_allclose(run(after, arrays, {"N": steps})["C"], expected, rtol=1e-6)


def test_a_piece_is_whole_or_zero() -> None:
    text = print_func(staged(MASKED)[1])
    assert "cp_async_16_padded" in text
    assert "else" not in text  # nobody waits for the others of a warp
    assert "cp_async_16" not in print_func(staged(MASKED.replace("72", "74"))[1])


@for_each("steps", [0, 1, 2, 3, 7])
@for_each("registers", [4, 64])
@for_each("copy", [COPY, MASKED, WORD])
def test_without_cp_async_copies_pass_through_registers(
    steps: int, registers: int, copy: str
) -> None:
    before, after = staged(copy, registers=registers)
    text = print_func(after)
    assert "cp_async" not in text
    assert "alloc T: f32[128] @shared" in text  # two stages
    arrays = sample(before, {"N": steps})
    expected = run(before, arrays, {"N": steps})["C"].copy()
    np.testing.assert_allclose(run(after, arrays, {"N": steps})["C"], expected, rtol=1e-6)


def test_registers_are_loaded_before_products_and_stored_behind_them() -> None:
    text = print_func(staged(registers=5)[1])  # four on their way, and the sum
    loop = text[text.index("for k in") :]
    order = [" barrier", "k.ahead.T[ramp(0, 1, 4)] = A[", "S[0] +=", "= k.ahead.T[ramp(0, 1, 4)]"]
    places = [loop.index(word) for word in order]
    assert places == sorted(places)
    assert loop.count(" barrier") == 1
    direct = print_func(staged(registers=4)[1])
    loop = direct[direct.index("for k in") :]
    assert "ahead" not in direct
    assert loop.index("T[ramp((k + 1) % 2 * 64 + z * 4, 1, 4)] = A[") < loop.index("S[0] +=")


def test_a_loop_without_copies() -> None:
    loop = "for k in serial(2) {pipeline_stages=2} { for x in thread(4) { C[x] = 0.0 } }"
    text = f"func @f(out C: f32[8]) {{ {loop} }}"
    with pytest.raises(CodegenError, match="does not copy"):
        software_pipeline(parse_func(text))


PRODUCT = """func @product(A: bf16[N * 4096], B: bf16[N * 4096], out C: f32[4096]) {aligned=16} {
  for b in grid(1) {
    alloc S: f32[16, 64] @fragment
    for w in warp(4) { tile fill S[0 : 64] using "wgmma_zero_64" }
    for k in serial(N) {pipeline_stages=4} {
      alloc L: bf16[4096] @shared
      alloc R: bf16[4096] @shared
      tile copy L[0 : 64] <- A[k * 4096 : 64] using "tma_load_bf16_64x64"
      tile copy R[0 : 64] <- B[k * 4096 : 64] using "tma_load_bf16_64x64"
      barrier
      for y in warp(4) {
        tile mma.nt S[0 : 64] <- L[y * 1024 : 64], R[0 : 64] using "wgmma_bf16_64_nt"
      }
    }
  }
}"""


def test_whole_tiles_are_counted_and_products_go_on() -> None:
    text = print_func(software_pipeline(parse_func(PRODUCT)))
    before, loop = text.split("for k in")
    assert "mbarrier_init k.mbarriers[0 : 4] count 2" in before
    assert "for k.prologue in serial(3)" in before
    order = [
        "mbarrier_wait k.mbarriers[k % 4] parity k // 4 % 2",
        "wgmma_bf16_64_nt_async",
        " barrier",
    ]
    order += ["if k + 3 < N", "k.mbarriers[(k + 3) % 4] using", "wgmma_wait_64"]
    places = [loop.index(word) for word in order]
    assert places == sorted(places)
    assert loop.count(" barrier") == 1


def test_loops_whose_accumulators_leave_few_registers_are_not_unrolled() -> None:
    text = PRODUCT.replace("f32[16, 64]", "f32[64, 64]").replace("wgmma_zero_64", "mma_zero_64x64")
    text = text.replace("wgmma_bf16_64_nt", "mma_bf16_64x64_nt").replace("tile copy", "TMA")
    text = re.sub(r"TMA (.).*", r"for t\1 in thread(8) { \1[t\1] = A[k * 4096 + t\1] }", text)

    def is_rolled(registers: int, func: str = text) -> bool:
        return "{rolled=1}" in print_func(software_pipeline(parse_func(func), registers))

    assert is_rolled(255)
    assert not is_rolled(256)
    assert not is_rolled(16, PRODUCT)


def test_whole_tiles_and_others_are_not_mixed() -> None:
    mixed = PRODUCT.replace(
        'tile copy R[0 : 64] <- B[k * 4096 : 64] using "tma_load_bf16_64x64"',
        "for t in thread(64) { R[t] = B[k * 4096 + t] }",
    )
    with pytest.raises(CodegenError, match="mixes TMA with other copies"):
        software_pipeline(parse_func(mixed))
    with pytest.raises(CodegenError, match="mixes TMA with other copies"):
        software_pipeline(parse_func(PRODUCT.replace(" {aligned=16}", "")))
