from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import LoweringError
from tilewright.ir.loop.access_regions import make_block, regions_of
from tilewright.ir.loop.nodes import Buffer, Iter
from tilewright.ir.loop.parse import parse_stmt
from tilewright.ir.loop.text import print_region

DTYPES = {"A": F32, "B": I64, "C": F32}
BUFFERS = {"A": Buffer("A", F32, (const(100), Var("n")))}


def regions(source: str) -> tuple[str, str]:
    found = regions_of(parse_stmt(source, DTYPES), BUFFERS)
    reads, writes = (", ".join(sorted(map(print_region, side))) for side in found)
    return reads, writes


@for_each(
    ("source", "reads", "writes"),
    [
        ("C[vi] += A[vi, 0]", "A[vi, 0], C[vi]", "C[vi]"),
        ("for r in serial(4) { C[vi] = A[vi * 4 + r, 0] }", "A[vi * 4 : 4, 0]", "C[vi]"),
        ("for r in serial(4) { C[vi] = A[vi - r * 2, 0] }", "A[vi - 6 : 7, 0]", "C[vi]"),
        ("for r in serial(8) { C[(vi * 8 + r) // 8] = 1.0 }", "", "C[vi]"),
        ("for r in serial(8) { C[(vi * 8 + r) % 24] = 1.0 }", "", "C[vi % 3 * 8 : 8]"),
        ("for r in serial(n) { C[r] = A[r % 4, 3] }", "A[0 : 4, 3]", "C[0 : n]"),
        ("for r in serial(8) { C[0] = A[B[r], r] }", "A[0 : 100, 0 : 8], B[0 : 8]", "C[0]"),
        ("for r in serial(8) { C[0] = A[0, B[vi]] }", "A[0, B[vi]], B[vi]", "C[0]"),
        ("if B[vi] < 3 { C[0 ? B[0] < 1] = 1.0 } else { C[1] = 1.0 }", "B[0], B[vi]", "C[0], C[1]"),
        ("alloc T: f32[4] T[0] = A[0, 0] C[0] = T[0]", "A[0, 0]", "C[0]"),
        ("alloc T: i64[4] T[0] = B[0] C[0] = A[T[0], 1]", "A[0 : 100, 1], B[0]", "C[0]"),
        ("C[0] = A[0, 0] + A[0, 0] * A[0, 1]", "A[0, 0], A[0, 1]", "C[0]"),
        (
            "for r in serial(3) { tile copy C[r * 4 : 4] <- A[0, r * 4 : 4] }",
            "A[0, 0 : 12]",
            "C[0 : 12]",
        ),
    ],
)
def test_regions(source, reads, writes):
    assert regions(source) == (reads, writes)


def test_a_block_inside_counts_by_its_signature():
    block = 'block "x" [q: S(32) = vi * 4 + r] reads A[q, 0 : 4] writes C[q] { C[q] = A[q, 0] }'
    assert regions(f"for r in serial(4) {{ {block} }}") == ("A[vi * 4 : 4, 0 : 4]", "C[vi * 4 : 4]")


def test_an_index_from_data_needs_the_shape():
    stmt = parse_stmt("for r in serial(8) { C[B[r]] = 1.0 }", DTYPES)
    with pytest.raises(LoweringError, match="index 0 of 'C' depends on data"):
        regions_of(stmt)


def test_what_init_starts_is_not_read():
    iters = (Iter("vi", "S", const(4), Var("i")), Iter("vk", "R", const(8), Var("k")))
    body = parse_stmt("C[vi] += A[vi, vk]", DTYPES)
    block = make_block("C", iters, body, parse_stmt("C[vi] = A[0, 0]", DTYPES))
    assert [print_region(r) for r in block.reads] == ["A[0, 0]", "A[vi, vk]"]
    assert [print_region(r) for r in block.writes] == ["C[vi]"]
    update = make_block("C", iters, body)
    assert "C[vi]" in [print_region(r) for r in update.reads]
