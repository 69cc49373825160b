"""The table of intrinsics: what each computes, as loops, and what it is emitted as.

A pattern's parameters are the operands, the output last. A symbolic extent in it matches any
constant. The emitted text is an LLVM function `void @tw.<name>(ptr, ...)` with the operands in the
pattern's order; after inlining nothing of the call is left.
"""

from __future__ import annotations

from tilewright.schedule.intrin.cpu.amx import AMX
from tilewright.schedule.intrin.cpu.bf16_dot import BF16_PAIRS
from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable
from tilewright.schedule.intrin.nvidia.cp_async import CP_ASYNC_COPIES
from tilewright.schedule.intrin.nvidia.fragment_shuffle import FRAGMENT_SHUFFLES
from tilewright.schedule.intrin.nvidia.mma import MMA
from tilewright.schedule.intrin.nvidia.tma import TMA
from tilewright.schedule.intrin.nvidia.wgmma import WGMMA
from tilewright.schedule.intrin.nvidia.wgmma_tf32_rs import WGMMA_TF32_RS

# Four products of bytes a lane, the same four bytes of the row for all lanes.
_SDOT = """
declare <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32>, <16 x i8>, <16 x i8>)
define internal void @tw.sdot(ptr %a, ptr %b, ptr %c) alwaysinline {
  %four = load i32, ptr %a, align 1
  %one = insertelement <4 x i32> poison, i32 %four, i64 0
  %same = shufflevector <4 x i32> %one, <4 x i32> poison, <4 x i32> zeroinitializer
  %row = bitcast <4 x i32> %same to <16 x i8>
  %columns = load <16 x i8>, ptr %b, align 1
  %old = load <4 x i32>, ptr %c, align 4
  %new = call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %old, <16 x i8> %columns,
                                                          <16 x i8> %row)
  store <4 x i32> %new, ptr %c, align 4
  ret void
}
"""
_VNNI = """
declare <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32>, <64 x i8>, <64 x i8>)
define internal void @tw.vnni(ptr %a, ptr %b, ptr %c) alwaysinline {
  %four = load i32, ptr %a, align 1
  %one = insertelement <16 x i32> poison, i32 %four, i64 0
  %same = shufflevector <16 x i32> %one, <16 x i32> poison, <16 x i32> zeroinitializer
  %row = bitcast <16 x i32> %same to <64 x i8>
  %columns = load <64 x i8>, ptr %b, align 1
  %old = load <16 x i32>, ptr %c, align 4
  %new = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %old, <64 x i8> %row,
                                                      <64 x i8> %columns)
  store <16 x i32> %new, ptr %c, align 4
  ret void
}
"""

INTRINSICS = IntrinsicTable(
    {
        "sdot": Intrinsic(
            """
        func @sdot(a: i8[4], b: i8[4, 4], out c: i32[4]) {
          for j, k in serial(4, 4) { c[j] += i32(a[k]) * i32(b[j, k]) }
        }
        """,
            tile="dot",
            arch="aarch64",
            features=("dotprod",),
            llvm=_SDOT,
        ),
        "vnni": Intrinsic(
            """
        func @vnni(a: u8[4], b: i8[16, 4], out c: i32[16]) {
          for j, k in serial(16, 4) { c[j] += i32(a[k]) * i32(b[j, k]) }
        }
        """,
            tile="dot",
            arch="x86_64",
            features=("avx512vnni",),
            llvm=_VNNI,
        ),
        "fma_tile": Intrinsic(
            """
        func @fma_tile(a: f32[M, K], b: f32[K, N], out c: f32[M, N]) {
          for i, j, k in serial(M, N, K) { c[i, j] += a[i, k] * b[k, j] }
        }
        """,
            tile="mma",
        ),
        **AMX,
        **BF16_PAIRS,
        **TMA,
        **CP_ASYNC_COPIES,
        **MMA.rows,
        **WGMMA.rows,
        **WGMMA_TF32_RS.rows,
        **FRAGMENT_SHUFFLES.rows,
    }
)
