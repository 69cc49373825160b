from __future__ import annotations

from tests.for_each import for_each
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import loops
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.smem_copy import aligned_elements, copy_by_threads
from tilewright.schedule.schedule import Schedule

COPY = """
func @copy(A: f32[16, 32], out B: f32[16, 32]) {
  for i, j in serial(16, 32) {
    block "B" [vi: S(16) = i, vj: S(32) = j] reads A[vi, vj] writes B[vi, vj] {
      B[vi, vj] = A[vi, vj]
    }
  }
}
"""


@for_each(
    ("vector", "expected"),
    [
        (0, [("thread", 64), ("unroll", 8)]),
        (1, [("thread", 64), ("unroll", 8), ("serial", 1)]),
        (4, [("thread", 64), ("unroll", 2), ("vectorize", 4)]),
    ],
)
def test_neighbouring_threads_copy_neighbouring_vectors(
    vector: int, expected: list[tuple[str, int]]
) -> None:
    sch = Schedule(parse_func(COPY))
    copy_by_threads(sch, ["i", "j"], 64, vector)
    assert [(f.kind, int(str(f.extent))) for f in loops(sch.func.body)] == expected


@for_each(
    ("columns", "index", "expected"),
    [
        (32, "vj", 8),
        (36, "vj", 4),
        (34, "vj", 2),
        (33, "vj", 8),  # one by one
        (40, "vj + 4", 4),
        (40, "vj * 2", 8),
    ],
)
def test_neighbours_that_are_aligned_are_copied_together(
    columns: int, index: str, expected: int
) -> None:
    text = COPY.replace("A: f32[16, 32]", f"A: f16[16, {columns}]")
    text = text.replace("A[vi, vj]", f"A[vi, {index}]").replace("out B: f32", "out B: f16")
    graph = block_graph(parse_func(text))
    assert aligned_elements(graph.block("B"), dict(graph.buffers), 8) == expected
