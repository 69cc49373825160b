from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS, SIGNS
from tilewright.schedule.intrin.table import INTRINSICS

EMITTED = [name for name, row in INTRINSICS.items() if row.llvm]


def test_patterns_are_programs() -> None:
    for name, row in INTRINSICS.items():
        func = pattern_of(name)
        verify_func(func)
        assert func.name == name
        assert row.tile or row.llvm


# What each is in assembly, by the first part of its name.
INSTRUCTIONS = {
    "sdot": "sdot",
    "vnni": "vpdpbusd",
    "amx_zero": "tilezero",
    "amx_bf16": "tdpbf16ps",
    "amx_store": "tilestored",
    "vdpbf16ps": "vdpbf16ps",
    "bfdot": "bfdot",
    "mma_zero": "st.",
    "wgmma_zero": "st.",
    "wgmma_bf16": "wgmma.mma_async.sync.aligned.m64n",
    "wgmma_f16": "wgmma.mma_async.sync.aligned.m64n",
    "wgmma_f32": "wgmma.mma_async.sync.aligned.m64n",
    **{f"wgmma_{t}": "wgmma.mma_async.sync.aligned.m64n" for t in ("i8", "u8")},
    "tma_load": "cp.async.bulk.tensor.",
    "quad_transpose": "shfl.sync.bfly",
    "packed_transpose": "shfl.sync.bfly",
    "row_transpose": "shfl.sync.bfly",
    "wgmma_wait": "wgmma.wait_group.sync.aligned",
    "mma_bf16": "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "mma_f32": "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma_f16": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    **{
        f"mma_{kind}_": f"mma.sync.aligned.m16n8k32.row.col.s32.{SIGNS[a]}.{SIGNS[b]}.s32"
        for kind, (a, b) in BYTE_KINDS.items()
    },
    "mma_f16_k8": "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    **{
        f"mma_{kind}_k16": f"mma.sync.aligned.m8n8k16.row.col.s32.{SIGNS[a]}.{SIGNS[b]}.s32"
        for kind, (a, b) in BYTE_KINDS.items()
    },
    "cp_async_16": "cp.async.cg.shared.global",
    "cp_async_8": "cp.async.ca.shared.global",
    "cp_async_4": "cp.async.ca.shared.global",
}
# The processor that an architecture's code is for, where there is none for all.
PROCESSORS = {"nvptx64": "sm_90a"}


def _family(name: str) -> str:
    return max((s for s in INSTRUCTIONS if name.startswith(s)), key=len)


@pytest.mark.parametrize("family", INSTRUCTIONS)
def test_emitted_text_becomes_the_instruction(family: str) -> None:
    names = [name for name in EMITTED if _family(name) == family]
    assert names
    without = [n for n in names if INSTRUCTIONS[family] not in _assembly(n)]
    assert not without


def _assembly(name: str) -> str:
    return str(_compiled(name).emit_assembly(_module(name)))


def _module(name: str) -> binding.ModuleRef:
    row = INTRINSICS[name]
    state = "" if row.state is None else row.state.llvm
    module = binding.parse_assembly(state + row.llvm.replace("define internal", "define"))
    module.verify()
    return module


def _compiled(name: str) -> binding.TargetMachine:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    row = INTRINSICS[name]
    features = ",".join(f"+{f}" for f in row.features)
    target = binding.Target.from_triple(f"{row.arch}-unknown-linux-gnu")
    cpu = PROCESSORS.get(row.arch, "")
    return target.create_target_machine(cpu=cpu, features=features, opt=3)


def _has(flag: str) -> bool:
    """Whether the kernel reports an extension: LLVM does not know of all that AArch64 has."""
    info = Path("/proc/cpuinfo")
    return info.exists() and flag in info.read_text().split()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sdot", marks=pytest.mark.skipif(not _has("asimddp"), reason="no dotprod")),
        pytest.param("vnni", marks=pytest.mark.skipif(not _has("avx512_vnni"), reason="no vnni")),
    ],
)
def test_the_instruction_computes_its_pattern(name: str) -> None:
    rng = np.random.default_rng(0)
    func = pattern_of(name)
    arrays = {}
    for b in func.params:
        info = np.iinfo(b.dtype.numpy)
        bound = (info.min, info.max) if b.dtype.bits == 8 else (-1000, 1000)
        shape = tuple(int(str(d)) for d in b.shape)
        arrays[b.name] = rng.integers(*bound, shape, endpoint=True).astype(b.dtype.numpy)
    expected = {n: a.copy() for n, a in arrays.items()}
    run_func(func, expected)
    engine = binding.create_mcjit_compiler(_module(name), _compiled(name))
    engine.finalize_object()
    address = engine.get_function_address(f"tw.{name}")
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)
    call(*(arrays[b.name].ctypes.data for b in func.params))
    np.testing.assert_array_equal(arrays["c"], expected["c"])
