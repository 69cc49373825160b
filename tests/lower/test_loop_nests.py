from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.lower.random_programs import random_program
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I32
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import blocks
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.lower.collapse_dims import collapse
from tilewright.lower.loop_nests import program_func


@for_each("seed", range(25))
def test_loops_compute_the_program(seed: int) -> None:
    program = random_program(seed)
    sizes, rng = {"N": 3}, np.random.default_rng(0)
    for p in (program, collapse(program)):
        func = program_func(p)
        verify_func(func)
        given = {
            t.name: rng.standard_normal([evaluate(d, sizes) for d in t.shape]).astype("f4")
            for t in p.inputs
        }
        expected = run_program(p, given, sizes)
        stages = {s.name: s for s in p.stages}
        outputs = {
            name: np.full([evaluate(d, sizes) for d in stages[name].shape], np.nan, "f4")
            for name in func.outputs
        }
        run_func(func, {**given, **outputs}, sizes)
        for name, array in outputs.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)


def test_the_text_of_a_sum() -> None:
    b = Builder("f")
    x = b.input("x", F32, (Var("M"), Var("K")))
    t = b.compute("t", (Var("M"),), lambda i: b.sum((Var("K"),), lambda k: x[i, k]))
    y = b.compute("y", (Var("M"),), lambda i: t[i] * 2.0)
    text = print_func(program_func(b.program(y)))
    assert text.startswith("func @f(x: f32[M, K], out y: f32[M]) {\n  alloc t: f32[M]\n")
    assert "for t.i0 in serial(M) {" in text
    assert "init { t[i0] = 0.0 }" in text


def test_an_output_given_twice_is_one_parameter() -> None:
    b = Builder("f")
    x = b.input("x", F32, (2,))
    y = b.compute("y", (2,), lambda i: x[i] + 1.0)
    func = program_func(b.program(y, y))
    assert [p.name for p in func.params] == ["x", "y"]


def test_what_no_output_needs_has_no_loops() -> None:
    b = Builder("f")
    x = b.input("x", I32, (3, 4))
    t = b.compute("t", (3,), lambda i: b.sum((4,), lambda k: x[i, k]))
    hidden = b.compute("hidden", (3,), lambda i: x.at(i, i, when=i < -1))
    total = b.compute("total", (2,), lambda i: b.sum((3,), lambda k: hidden[k] * x[i, k]))
    y = b.compute("y", (3,), lambda i: t[i] * 0 + hidden[i] + 7)
    assert [b.name for b in blocks(program_func(b.program(y)).body)] == ["hidden", "y"]
    func = program_func(b.program(y, total))
    verify_func(func)
    assert "t[" not in print_func(func).replace("out", "")
    given = {"x": np.ones((3, 4), "i4"), "y": np.zeros(3, "i4"), "total": np.ones(2, "i4")}
    run_func(func, given, {})
    assert given["y"].tolist() == [7] * 3
    assert given["total"].tolist() == [0, 0]
