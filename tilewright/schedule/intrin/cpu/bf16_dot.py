"""Vectors of pairs of bf16 multiplied, both products added to a lane of f32.

    c[j] += a[0] * b[j, 0] + a[1] * b[j, 1]

Both instructions take subnormal operands and results for zero.
"""

from __future__ import annotations

from string import Template

from tilewright.schedule.intrin.intrinsic import Intrinsic

# One pair of the row for all lanes, a pair a lane of the panel.
_TEXT = Template("""
declare <$n x float> @$instruction(<$n x float>, <$m x bfloat>, <$m x bfloat>)
define internal void @tw.$name(ptr %a, ptr %b, ptr %c) alwaysinline {
  %pair = load i32, ptr %a, align 2
  %one = insertelement <$n x i32> poison, i32 %pair, i64 0
  %same = shufflevector <$n x i32> %one, <$n x i32> poison, <$n x i32> zeroinitializer
  %row = bitcast <$n x i32> %same to <$m x bfloat>
  %columns = load <$m x bfloat>, ptr %b, align 2
  %old = load <$n x float>, ptr %c, align 4
  %new = call <$n x float> @$instruction(<$n x float> %old, <$m x bfloat> %columns,
                                         <$m x bfloat> %row)
  store <$n x float> %new, ptr %c, align 4
  ret void
}
""")


def _row(name: str, lanes: int, arch: str, feature: str, instruction: str) -> Intrinsic:
    names = {"name": name, "n": lanes, "m": 2 * lanes, "instruction": instruction}
    return Intrinsic(
        f"func @{name}(a: bf16[2], b: bf16[{lanes}, 2], out c: f32[{lanes}]) {{"
        f" for j, k in serial({lanes}, 2) {{ c[j] += f32(a[k]) * f32(b[j, k]) }} }}",
        tile="dot",
        arch=arch,
        features=(feature,),
        llvm=_TEXT.substitute(names),
    )


_X86, _ARM = "llvm.x86.avx512bf16.dpbf16ps.512", "llvm.aarch64.neon.bfdot.v4f32.v8bf16"

BF16_PAIRS: dict[str, Intrinsic] = {
    "vdpbf16ps": _row("vdpbf16ps", 16, "x86_64", "avx512bf16", _X86),
    "bfdot": _row("bfdot", 4, "aarch64", "bf16", _ARM),
}
"""The rows of the table, by the name of the instruction."""
