from __future__ import annotations

import numpy as np

from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.mma import (
    MMA,
    ORDERS,
    WARP_TILES,
    mma_k,
    mma_names,
    mma_orders,
)
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS
from tilewright.schedule.intrin.table import INTRINSICS

# The K of Turing's instructions.
SHORT = {"f16": (8,), **{kind: (16,) for kind in BYTE_KINDS}}


def test_every_block_has_its_instructions() -> None:
    for rows, columns in WARP_TILES:
        for kind in ("f16", "bf16", "f32", *BYTE_KINDS):
            for order in mma_orders(kind, rows):
                for name in (
                    *mma_names(kind, rows, columns, order),
                    *(mma_names(kind, rows, columns, order, k)[1] for k in SHORT.get(kind, ())),
                ):
                    assert INTRINSICS[name].available("nvptx64", ())
                    assert not INTRINSICS[name].available("x86_64", ())


def test_each_combination_of_signs_has_an_instruction() -> None:
    found = [MMA[mma_names(kind, 16, 16, "nt")[1]].llvm for kind in BYTE_KINDS]
    words = ("s8(", "s8.u8(", "u8.s8(", "u8(")
    assert all(f"m16n8k32.row.col.{w}" in text for w, text in zip(words, found, strict=True))


@for_each(
    ("kind", "k", "instruction", "each"),
    [
        ("f16", 8, "m16n8k8.row.col.f32.f32", 2),
        ("i8", 16, "m8n8k16.row.col.s8(", 4),
        ("u8i8", 16, "m8n8k16.row.col.u8.s8(", 4),
    ],
)
def test_shorter_instructions_make_up_a_step(
    kind: str, k: int, instruction: str, each: int
) -> None:
    whole, short = (mma_names(kind, 32, 64, "nt", n) for n in (mma_k(kind), k))
    assert whole == mma_names(kind, 32, 64, "nt")
    assert short[0] == whole[0]
    assert str(pattern_of(short[1])) == str(pattern_of(whole[1])).replace(whole[1], short[1])
    tiles = 32 // 16 * 64 // 8
    assert MMA[short[1]].llvm.count(f"@llvm.nvvm.mma.{instruction}") == each * tiles
    assert MMA[whole[1]].llvm.count("@llvm.nvvm.mma.") == tiles
    assert MMA[short[1]].llvm.count("store ") == 4 * tiles


@for_each(
    ("kind", "order", "k"),
    [
        *(("bf16", o, 0) for o in ORDERS),
        *(("f16", o, 8) for o in ORDERS),
        ("f32", "nt", 0),
        *((kind, "nt", k) for kind in BYTE_KINDS for k in (0, 16)),
    ],
)
def test_a_tile_expands_to_its_pattern(kind: str, order: str, k: int) -> None:
    name = mma_names(kind, 16, 16, order, k)[1]
    pattern = pattern_of(name)
    regions = {
        p.name: f"{p.name}[{', '.join(f'0 : {d}' for d in p.shape)}]" for p in pattern.params
    }
    head = print_func(pattern).split(") {")[0]
    c, a, b = (regions[name] for name in "cab")
    text = f"{head}) {{ tile fill {c} tile {MMA[name].tile} {c} <- {a}, {b} }}"
    arrays = sample(pattern, {})
    left, right = (arrays[n].astype(np.float32) for n in "ab")
    left, right = left.T if order[0] == "t" else left, right.T if order[1] == "t" else right
    found = run(parse_func(text), arrays, {})["c"].reshape(16, 16)
    np.testing.assert_allclose(found, left @ right, rtol=1e-4, atol=1e-5)
