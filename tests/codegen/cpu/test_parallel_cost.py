from __future__ import annotations

from tests.for_each import for_each
from tilewright.codegen.cpu.parallel_cost import loop_work
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.text import parse_func


def work_of(body: str) -> str:
    func = parse_func(f"func @f(x: f32[N * M], out y: f32[N * M]) {{ {body} }}")
    assert isinstance(func.body, For)
    return str(loop_work(func.body))


@for_each(
    ("body", "steps"),
    [
        ("for i in parallel(10) { y[i] = x[i] }", "10"),
        ("for i in parallel(N) { y[i] = x[i] * 2.0 + 1.0 }", "N * 2"),
        ("for i in parallel(N) { for j in serial(M) { y[i * M + j] = x[j] } }", "M * N"),
        ("for i in parallel(N) { y[i] = 0.0  y[i] = -y[i] * 2.0 }", "N * 3"),
        ("for i in parallel(N) { if i < 3 { y[i] = 0.0 } else { y[i] = 1.0 } }", "N * 2"),
        (
            "for i in parallel(4) { for j in serial(min(8, N - i * 8)) { y[j] = 1.0 } }",
            "min(N, 8) * 4",
        ),
        ("for i in parallel(N) { for j in serial(i64(x[0])) { y[j] = 1.0 } }", "None"),
    ],
)
def test_steps_are_counted(body: str, steps: str) -> None:
    assert work_of(body) == steps
