from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np

from tests.for_each import for_each
from tilewright.runtime.roofline.kernels import (
    CHAINS,
    INSTRUCTIONS,
    READ_UNROLL,
    Instruction,
    compile_roof_kernels,
    declaration,
    host_instructions,
    lanes,
    multiply_add,
)


def test_the_kernels_compute_what_they_say() -> None:
    instructions = host_instructions()
    kernels, engine = compile_roof_kernels(instructions.values())
    sums = np.ones(CHAINS * lanes(), np.float32)
    kernels["multiply_add_f32"](5, sums.ctypes.data)
    np.testing.assert_array_equal(sums, 6)  # 1 + 5 * (1 * 1)
    step = READ_UNROLL * lanes()
    x, out = np.arange(2 * step, dtype=np.float32), np.zeros(step, np.float32)
    kernels["read"](2 * step, 3, x.ctypes.data, out.ctypes.data)
    assert out.sum() == 3 * x.sum()
    kernels["clock"](2)
    assert {f"multiply_add_{name}" for name in instructions} <= kernels.keys()
    engine.close()


@for_each("one", INSTRUCTIONS, ids=lambda one: one.name)
def test_every_instruction_assembles_without_spills(one: Instruction) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    x86 = one.feature.startswith("avx")
    triple = "x86_64-unknown-linux-gnu" if x86 else "aarch64-unknown-linux-gnu"
    cpu = "sapphirerapids" if x86 else "neoverse-v2"
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)
    text = machine.emit_assembly(llvm.parse_assembly(declaration(one) + "\n" + multiply_add(one)))
    if one.element == "f16":
        word = "vfmadd" if x86 else "fmla"
    else:
        word = one.name.split(".")[3 if not x86 else -2]
    assert sum(word in line for line in text.splitlines()) == CHAINS
