"""Random tensor programs, of structures that no operator has: collapsed, scheduled, finalized.

Machine code of this processor, and the interpreted loops for one with wide vectors, must both agree
with the tensor interpreter, which knows nothing of loops.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.codegen.native_func import NativeFunc
from tests.for_each import for_each
from tests.lower.random_programs import random_program
from tilewright.arith.evaluate import evaluate
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Func
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.nodes import Program
from tilewright.lower.collapse_dims import collapse
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.registry import CPUS

Run = Callable[[dict[str, np.ndarray], dict[str, int]], None]


def _plain(program: Program, target: CpuTarget) -> Func:
    scheduled = schedule_func(program_func(collapse(program)), frozenset(), target)
    return finalize(scheduled.func, target)


def _compare(program: Program, plain: Func, run: Run) -> None:
    for n in (1, 3, 16, 0):
        sizes, rng = {"N": n}, np.random.default_rng(n)
        given = {
            t.name: rng.standard_normal([evaluate(d, sizes) for d in t.shape]).astype("f4")
            for t in program.inputs
        }
        arrays = {
            p.name: given[p.name].reshape(-1).copy()
            if p.name in given
            else np.full(evaluate(p.shape[0], sizes), np.nan, "f4")
            for p in plain.params
        }
        run(arrays, sizes)
        expected = run_program(program, given, sizes)
        for name in program.outputs:
            a, b = arrays[name], expected[name].ravel()
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("seed", range(40))
def test_machine_code(seed: int, outputs: int) -> None:
    program = random_program(seed, outputs)
    plain = _plain(program, host())
    native = NativeFunc(plain, threads=2)
    try:
        _compare(program, plain, native)
    finally:
        native.close()


@for_each("seed", range(20))
def test_wide_vectors(seed: int) -> None:
    program = random_program(seed, 1)
    plain = _plain(program, CPUS["x86-64-v4"])
    _compare(program, plain, lambda arrays, sizes: run_func(plain, arrays, sizes))
