"""Tiles run as the target's instruction where it has one, as loops elsewhere: the same result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.codegen.native_func import llvm_text, run_native
from tests.for_each import for_each
from tilewright.arith.expr import cast
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.dtypes import I8, I32, U8, DType
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.finalize.expand_tiles import dispatched, expand_tiles
from tilewright.ir.loop.nodes import Func, Tile
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import statements
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.registry import CPUS


def _dot_product(left: DType, lanes: int, intrinsic: str) -> Func:
    b = Builder("q")
    x, w = b.input("x", left, (5, 16)), b.input("w", I8, (16, 32))
    y = b.compute(
        "y",
        (5, 32),
        lambda i, j: b.sum((16,), lambda r: cast(I32, x[i, r]) * cast(I32, w[r, j])),
    )
    sch = Schedule(program_func(b.program(y)))
    sch.transform_layout("w", [[1, lanes, 0], [0, 4, 0], [1, lanes, 1], [0, 4, 1]])
    j, k = sch.split("y.i1", [None, lanes]), sch.split("y.r0", [None, 4])
    sch.reorder(j[0], k[0], j[1], k[1])
    sch.tensorize(sch.blockize(j[1]), intrinsic)
    return sch.func


def _tiles(func: Func) -> list[Tile]:
    return [s for _, s in statements(func.body) if isinstance(s, Tile)]


def _with(target: CpuTarget, intrinsic: str) -> CpuTarget:
    row = INTRINSICS[intrinsic]
    return replace(target, features=(*target.features, *(f"+{f}" for f in row.features)))


@for_each(
    ("intrinsic", "machine", "left", "lanes", "instruction"),
    [("sdot", "aarch64", I8, 4, "sdot"), ("vnni", "x86-64-v4", U8, 16, "vpdpbusd")],
)
def test_a_machine_that_has_it_gets_the_instruction(
    intrinsic: str, machine: str, left: DType, lanes: int, instruction: str
) -> None:
    func = _dot_product(left, lanes, intrinsic)
    target = _with(CPUS[machine], intrinsic)
    plain = finalize(func, target)
    assert _tiles(plain)
    assert instruction in compile_assembly(llvm_text(plain), target)
    assert not _tiles(finalize(func, CPUS[machine]))


@for_each(("intrinsic", "left", "lanes"), [("sdot", I8, 4), ("vnni", U8, 16)])
def test_instruction_and_expansion_agree(intrinsic: str, left: DType, lanes: int) -> None:
    func = _dot_product(left, lanes, intrinsic)
    rng = np.random.default_rng(1)
    low, high = (0, 256) if left is U8 else (-128, 128)
    x = rng.integers(low, high, (5, 16)).astype(left.numpy)
    w = rng.integers(-128, 128, (16, 32)).astype(np.int8)
    packed = w.reshape(4, 4, 32 // lanes, lanes).transpose(2, 0, 3, 1).copy()
    for features in (host().features, ()):
        plain = finalize(func, replace(host(), features=features))
        y = np.zeros((5, 32), np.int32)
        run_native(plain, {"x": x, "w": packed, "y": y})
        np.testing.assert_array_equal(y, x.astype(np.int32) @ w.astype(np.int32))


def test_tiles_without_an_instruction_become_loops() -> None:
    func = parse_func(
        """
        func @f(a: f32[4, 3], b: f32[3, 5], out c: f32[4, 5]) {
          tile fill c[0 : 4, 0 : 5]
          tile mma c[0 : 4, 0 : 5] <- a[0 : 4, 0 : 3], b[0 : 3, 0 : 5] using "fma_tile"
        }
        """
    )
    assert not any(dispatched(t, host()) for t in _tiles(func))
    assert not _tiles(expand_tiles(func, host()))


HELD = """
func @f(a: bf16[16, 32], b: bf16[16, 32, 2], out c: f32[16, 32]) {{
  alloc s: f32[16, 32] @local
  tile fill s[0 : 16, 0 : 32] using "amx_zero_1x2"
  {between}
  tile mma.packed s[0 : 16, 0 : 32] <- a[0 : 16, 0 : 32], b[0 : 16, 0 : 32, 0 : 2]
    using "amx_bf16_1x2"
  tile copy c[0 : 16, 0 : 32] <- s[0 : 16, 0 : 32] using "amx_store_1x2"
}}
"""


@for_each(
    ("between", "tiles"),
    [("", 3), ("s[0, 0] = 1.0", 0), ('tile fill c[0 : 16, 0 : 32] using "amx_zero_1x2"', 0)],
    ids=["alone", "touched", "two"],
)
def test_what_registers_hold_is_the_instructions_alone(between: str, tiles: int) -> None:
    func = parse_func(HELD.format(between=between))
    assert len(_tiles(expand_tiles(func, CPUS["sapphirerapids"]))) == tiles


def _two_sums(order: str) -> Func:
    """Sums of two products on a matrix unit, whose steps come in the given order."""
    steps = {
        "z": 'tile fill s[0 : 32, 0 : 32] using "amx_zero_2x2"',
        "Z": 'tile fill u[0 : 32, 0 : 32] using "amx_zero_2x2"',
        "c": 'tile copy y[0 : 32, 0 : 32] <- s[0 : 32, 0 : 32] using "amx_store_2x2"',
        "C": 'tile copy v[0 : 32, 0 : 32] <- u[0 : 32, 0 : 32] using "amx_store_2x2"',
    }
    body = "\n".join(steps[name] for name in order)
    return parse_func(
        "func @f(out y: f32[32, 32], out v: f32[32, 32]) {"
        f" alloc s: f32[32, 32] @local alloc u: f32[32, 32] @local {body} }}"
    )


@for_each(("order", "kept"), [("zcZC", 4), ("zZcC", 0)])
def test_two_sums_are_held_only_one_after_the_other(order: str, kept: int) -> None:
    func = expand_tiles(_two_sums(order), CPUS["sapphirerapids"])
    assert len(_tiles(func)) == kept
