"""Finalization as a whole: kernels of every schedule, for every target, at odd sizes."""

from __future__ import annotations

import pytest

from tests.ci_sample import one_in
from tests.differential.kernel_graphs import KERNELS, NEEDS_FIXED_CHANNELS, NEVER_EMPTY
from tests.finalize.kernel_steps import check_steps, kernels
from tilewright.arith.expr import Var
from tilewright.finalize.cpu.pipeline import STEPS, finalize
from tilewright.ir.loop.nodes import Alloc, Block, For
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import statements
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.registry import CPUS

M, N, K = Var("M"), Var("N"), Var("K")


# Narrow and wide vectors, in turn.
TARGETS = [CPUS[name] for name in ("aarch64", "x86-64-v4", "x86-64-v3")]
CASES = [(name, TARGETS[i % len(TARGETS)]) for i, name in enumerate(KERNELS)]


@pytest.mark.parametrize(("name", "target"), CASES, ids=[f"{n}-{t.cpu}" for n, t in CASES])
def test_every_step_keeps_the_meaning(name: str, target: CpuTarget) -> None:
    for kernel in kernels(KERNELS[name](3, 5, 18), target):
        plain = check_steps(kernel.func, {}, target)
        for _, stmt in statements(plain.body):
            assert not isinstance(stmt, Block)
            assert not (isinstance(stmt, For) and stmt.kind in ("vectorize", "unroll"))
            assert not (isinstance(stmt, Alloc) and stmt.buffer.scope == "global")


@pytest.mark.parametrize("name", one_in(2, KERNELS))
def test_symbolic_sizes(name: str) -> None:
    dims = (M, 5, 6) if name in NEEDS_FIXED_CHANNELS else (M, N, K)
    for kernel in kernels(KERNELS[name](*dims)):
        for sizes in ((3, 7, 18), (0, 2, 3), (2, 0, 1), (1, 5, 0)):
            if 0 in sizes and name in NEVER_EMPTY:
                continue
            check_steps(kernel.func, kernel.sizes(dict(zip("MNK", sizes, strict=True))))


def test_steps_are_named_once() -> None:
    assert len({name for name, _ in STEPS}) == len(STEPS)


def test_finalize_runs_all_steps() -> None:
    func = parse_func(
        "func @f(x: f32[N], out y: f32[N]) {"
        '  for i in serial(N) { block "y" [v: S(N) = i] reads x[v] writes y[v]'
        "    { y[v] = exp(x[v]) } } }"
    )
    text = str(finalize(func, host()).body)
    assert "Block" not in text
    assert "exp(" not in text
