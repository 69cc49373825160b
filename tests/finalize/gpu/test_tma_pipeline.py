from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F16
from tilewright.finalize.gpu.tma_pipeline import Counter, TmaPipeline
from tilewright.ir.loop.nodes import Alloc, Buffer, Region, Seq, Stmt, Tile
from tilewright.ir.loop.text import print_stmt

ONE = Region("T", ((const(0), const(64)),))
SOURCE = Region("A", ((Var("k") * 4096, const(64)),))
PIPELINE = TmaPipeline(
    (Buffer("T", F16, (const(4096),), "shared"),),
    (Tile("copy", ONE, (SOURCE,), "tma_load_f16_64x64"),),
    3,
)


def _lines(stmt: Stmt) -> list[str]:
    assert isinstance(stmt, Seq)
    return list(map(print_stmt, stmt.stmts))


def test_a_ring_has_two_mbarriers_a_stage() -> None:
    assert [str(b) for b in PIPELINE.all_stages()] == ["T: f16[12288] @shared"]
    assert [str(b) for b in PIPELINE.mbarriers()] == [
        "T.full: i64[3] @shared",
        "T.empty: i64[3] @shared",
    ]
    assert [print_stmt(s) for s in PIPELINE.start(8)] == [
        "mbarrier_init T.full[0 : 3] count 1",
        "mbarrier_init T.empty[0 : 3] count 8",
    ]


def test_a_copy_waits_until_its_stage_is_empty() -> None:
    assert _lines(PIPELINE.copy(Var("n"), {"k": Var("next")})) == [
        "mbarrier_wait T.empty[n % 3] parity (n // 3 + 1) % 2",
        "tile copy T[n % 3 * 4096 : 64] <- A[next * 4096 : 64], T.full[n % 3]"
        ' using "tma_load_f16_64x64"',
    ]


def test_a_reader_waits_for_the_phase_that_the_copy_completes() -> None:
    wait = "mbarrier_wait T.full[n % 3] parity n // 3 % 2"
    assert print_stmt(PIPELINE.wait_full(Var("n"))) == wait
    assert print_stmt(PIPELINE.release(Var("n"))) == "mbarrier_arrive T.empty[n % 3]"


def test_a_counter_has_32_bits() -> None:
    count = Counter("c")
    made = count.around(const(2), count.advance(Var("n")))
    assert isinstance(made, Alloc)
    assert str(made.buffer) == "c: u32[1] @register"
    assert _lines(made.body) == ["c[0] = u32(2)", "c[0] += u32(n)"]
    assert str(count.plus(Var("k"))) == "i64(c[0] + u32(k))"
