from __future__ import annotations

import numpy as np

from tests.finalize.kernel_steps import run, sample
from tests.for_each import for_each
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.nvidia.mma import MMA, ORDERS, WARP_TILES, mma_names, mma_orders
from tilewright.schedule.intrin.nvidia.mma_types import BYTE_KINDS
from tilewright.schedule.intrin.table import INTRINSICS


def test_every_block_has_its_instructions() -> None:
    for rows, columns in WARP_TILES:
        for kind in ("f16", "bf16", "f32", *BYTE_KINDS):
            for order in mma_orders(kind, rows):
                for name in mma_names(kind, rows, columns, order):
                    assert INTRINSICS[name].available("nvptx64", ())
                    assert not INTRINSICS[name].available("x86_64", ())


def test_each_combination_of_signs_has_an_instruction() -> None:
    found = [MMA[mma_names(kind, 16, 16, "nt")[1]].llvm for kind in BYTE_KINDS]
    words = ("s8(", "s8.u8(", "u8.s8(", "u8(")
    assert all(f"m16n8k32.row.col.{w}" in text for w, text in zip(words, found, strict=True))


@for_each(
    ("kind", "order"),
    [*(("bf16", o) for o in ORDERS), ("f32", "nt"), *((kind, "nt") for kind in BYTE_KINDS)],
)
def test_a_tile_expands_to_its_pattern(kind: str, order: str) -> None:
    name = mma_names(kind, 16, 16, order)[1]
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
