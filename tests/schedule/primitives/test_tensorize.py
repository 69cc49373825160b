from __future__ import annotations

from tests.schedule.programs import check_same, check_schedule, matmul, refused
from tilewright.arith.expr import Var, cast
from tilewright.core.dtypes import I8, I32, U8, DType
from tilewright.ir.loop.nodes import Func, Tile
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_block
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.schedule import Schedule


def _integer_matmul(left: DType) -> Func:
    m = Var("M")
    b = Builder("q")
    x, w = b.input("x", left, (m, 16)), b.input("w", I8, (16, 32))
    y = b.compute(
        "y",
        (m, 32),
        lambda i, j: b.sum((16,), lambda r: cast(I32, x[i, r]) * cast(I32, w[r, j])),
    )
    return program_func(b.program(y))


def _tiled(before: Func, lanes: int) -> tuple[Schedule, str]:
    sch = Schedule(before)
    sch.transform_layout("w", [[1, lanes, 0], [0, 4, 0], [1, lanes, 1], [0, 4, 1]])
    j, k = sch.split("y.i1", [None, lanes]), sch.split("y.r0", [None, 4])
    sch.reorder(j[0], k[0], j[1], k[1])
    return sch, sch.blockize(j[1])


def test_portable_tile(golden) -> None:
    before = matmul(16, 12, 8)
    sch = Schedule(before)
    i, j = sch.split("y.i0", [None, 4]), sch.split("y.i1", [None, 6])
    k = sch.split("y.r0", [None, 4])
    sch.reorder(i[0], j[0], k[0], k[1], j[1], i[1])
    sch.tensorize(sch.blockize(k[1]), "fma_tile")
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_dot_products_become_tiles(golden) -> None:
    for left, lanes, name in ((I8, 4, "sdot"), (U8, 16, "vnni")):
        before = _integer_matmul(left)
        sch, tile = _tiled(before, lanes)
        sch.tensorize(tile, name)
        body = find_block(sch.func, tile).body
        assert isinstance(body, Tile)
        assert (body.op, body.intrinsic) == ("dot", name)
        golden(print_func(sch.func), name)
        check_same(before, sch.func)


def test_refused() -> None:
    sch, tile = _tiled(_integer_matmul(U8), 4)
    refused("tensorize.match", sch.tensorize, tile, "sdot")
    refused("tensorize.match", sch.tensorize, tile, "fma_tile")
    refused("tensorize.intrinsic", sch.tensorize, tile, "nothing")


def test_layout_that_is_not_contiguous_is_refused() -> None:
    sch = Schedule(_integer_matmul(I8))
    sch.transform_layout("w", [[1, 0, 0], [0, 0, 0]])
    j, k = sch.split("y.i1", [None, 4]), sch.split("y.r0", [None, 4])
    sch.reorder(j[0], k[0], j[1], k[1])
    refused("tensorize.layout", sch.tensorize, sch.blockize(j[1]), "sdot")


def test_a_copy_that_is_masked_by_bounds_is_padded() -> None:
    func = parse_func(
        """func @copy(x: f16[100, 72], out y: f16[128, 128]) {
          for a, i, k in serial(2, 128, 64) {
            block "y" [vi: S(128) = i, vk: S(128) = a * 64 + k] reads x[vi, vk] writes y[vi, vk] {
              y[vi, vk] = x[vi, vk ? vi < 100 & vk < 72]
            }
          }
        }"""
    )
    sch = Schedule(func)
    sch.tensorize(sch.blockize("i"), "tma_load_f16_128x64")
    tile = find_block(sch.func, "y.tile").body
    assert isinstance(tile, Tile)
    assert tile.op == "copy.padded"
    check_same(func, sch.func)
    other = Schedule(parse_func(print_func(func).replace("vk < 72", "vk < 71")))
    refused("tensorize.match", other.tensorize, other.blockize("i"), "tma_load_f16_128x64")


def test_the_rows_of_one_of_several_matrices_are_bounds_of_their_own() -> None:
    func = parse_func(
        """func @copy(x: f16[3, 100, 2, 72], out y: f16[6, 128, 128]) {
          for n, a, i, k in serial(6, 2, 128, 64) {
            block "y" [vn: S(6) = n, vi: S(128) = i, vk: S(128) = a * 64 + k]
                reads x[vn // 2, vi, vn % 2, vk] writes y[vn, vi, vk] {
              y[vn, vi, vk] = x[vn // 2, vi, vn % 2, vk ? vi < 100 & vk < 72]
            }
          }
        }"""
    )
    sch = Schedule(func)
    refused("tensorize.match", sch.tensorize, sch.blockize("i"), "tma_load_f16_128x64")
    sch = Schedule(func)
    sch.tensorize(sch.blockize("i"), "tma_load_f16_128x64_of_several")
    tile = find_block(sch.func, "y.tile").body
    assert isinstance(tile, Tile)
    assert tile.op == "copy.padded"
    check_same(func, sch.func)
    wrong = parse_func(print_func(func).replace("vi < 100", "vn < 6"))
    other = Schedule(wrong)
    refused(
        "tensorize.match", other.tensorize, other.blockize("i"), "tma_load_f16_128x64_of_several"
    )
