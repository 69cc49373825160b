"""Functions to schedule in tests, and the check that two functions mean the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, call, maximum
from tilewright.core.dtypes import F32
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, Func
from tilewright.ir.loop.text import parse_func
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.schedule import Schedule

M, N, K = Var("M"), Var("N"), Var("K")


def matmul(m: Expr | int = M, n: Expr | int = N, k: Expr | int = K) -> Func:
    """`y = x @ w`."""
    b = Builder("mm")
    x, w = b.input("x", F32, (m, k)), b.input("w", F32, (k, n))
    y = b.compute("y", (m, n), lambda i, j: b.sum((k,), lambda r: x[i, r] * w[r, j]))
    return program_func(b.program(y))


def dense(m: Expr | int = M, n: Expr | int = N, k: Expr | int = K) -> Func:
    """`relu(x @ w + bias)`, stages `mm`, `add`, `y`."""
    b = Builder("dense")
    x, w = b.input("x", F32, (m, k)), b.input("w", F32, (k, n))
    bias = b.input("bias", F32, (n,))
    mm = b.compute("mm", (m, n), lambda i, j: b.sum((k,), lambda r: x[i, r] * w[r, j]))
    add = b.compute("add", (m, n), lambda i, j: mm[i, j] + bias[j])
    y = b.compute("y", (m, n), lambda i, j: maximum(add[i, j], 0.0))
    return program_func(b.program(y))


def softmax(m: Expr | int = M, n: Expr | int = N) -> Func:
    """Row-wise softmax, stages `m`, `e`, `s`, `y`."""
    b = Builder("softmax")
    x = b.input("x", F32, (m, n))
    top = b.compute("m", (m,), lambda i: b.reduce("max", (n,), lambda r: x[i, r]))
    e = b.compute("e", (m, n), lambda i, j: call("exp", x[i, j] - top[i]))
    s = b.compute("s", (m,), lambda i: b.sum((n,), lambda r: e[i, r]))
    y = b.compute("y", (m, n), lambda i, j: e[i, j] / s[i])
    return program_func(b.program(y))


def conv(h: Expr | int = M, c: Expr | int = N, o: Expr | int = K) -> Func:
    """A padded 1-D convolution of width 3 with a stage `twice` before and `y` after `conv`."""
    b = Builder("conv")
    x, w = b.input("x", F32, (c, h)), b.input("w", F32, (o, c, 3))
    twice = b.compute("twice", (c, h), lambda i, j: x[i, j] * 2.0)

    def element(f: Expr, i: Expr, ch: Expr, r: Expr) -> Expr:
        at = i + r - 1
        inside = (Var("i1") + r - 1 >= 0) & (at < h)
        return twice.at(ch, at, when=inside) * w[f, ch, r]

    y = b.compute("conv", (o, h), lambda f, i: b.sum((c, 3), lambda ch, r: element(f, i, ch, r)))
    out = b.compute("y", (o, h), lambda f, i: maximum(y[f, i], 0.0))
    return program_func(b.program(out))


SIZES: Mapping[str, int] = {"M": 13, "N": 7, "K": 5}


def arrays(func: Func, sizes: Mapping[str, int] = SIZES, seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for the parameters; outputs start with something that must be overwritten."""
    rng = np.random.default_rng(seed)
    return {b.name: _array(b, sizes, rng, b.name in func.outputs) for b in func.params}


def _array(
    b: Buffer, sizes: Mapping[str, int], rng: np.random.Generator, is_output: bool
) -> np.ndarray:
    shape = tuple(evaluate(dim, sizes) for dim in b.shape)
    if is_output:
        return np.full(shape, 77, b.dtype.numpy)
    if b.dtype.is_float:
        return rng.standard_normal(shape).astype(b.dtype.numpy)
    return rng.integers(-5 if b.dtype.kind == "int" else 0, 6, shape).astype(b.dtype.numpy)


def pack(func: Func, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Parameters rearranged as `func.layouts` says."""
    packed = dict(given)
    for name, layout in func.layouts:
        packed[name] = _packed(given[name], layout.parts)
    return packed


def _packed(array: np.ndarray, parts: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    blocks = {axis: block for axis, block, _ in parts if block}
    widths = [(0, -array.shape[a] % blocks.get(a, 1)) for a in range(array.ndim)]
    padded = np.pad(array, widths)
    shape: list[int] = []
    places: dict[tuple[int, int], int] = {}
    for axis in range(array.ndim):
        places[axis, 0] = len(shape)
        if axis in blocks:
            shape += [padded.shape[axis] // blocks[axis], blocks[axis]]
            places[axis, 1] = len(shape) - 1
        else:
            shape.append(padded.shape[axis])
    order = [places[axis, place] for axis, _, place in parts]
    return np.ascontiguousarray(padded.reshape(shape).transpose(order))


def check_same(
    before: Func, after: Func, sizes: Mapping[str, int] = SIZES, exact: bool = True
) -> None:
    """Both functions give the same outputs; `exact` where no sum was reassociated."""
    given = arrays(before, sizes)
    expected = {name: a.copy() for name, a in given.items()}
    found = pack(after, {name: a.copy() for name, a in given.items()})
    run_func(before, expected, sizes)
    run_func(after, found, sizes)
    for name in before.outputs:
        if exact:
            np.testing.assert_array_equal(found[name], expected[name])
        else:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)


def check_schedule(sch: Schedule, before: Func, exact: bool = True) -> None:
    """A schedule keeps the meaning at two sets of sizes, and its trace gives the same function."""
    check_same(before, sch.func, SIZES, exact)
    check_same(before, sch.func, {"M": 8, "N": 12, "K": 4}, exact)
    check_same(before, sch.func, {"M": 1, "N": 1, "K": 1}, exact)
    assert sch.trace.replay(before) == sch.func


def func_of(text: str) -> Func:
    """A function from its text."""
    return parse_func(text)


def refused(code: str, step: Callable[..., object], *args: object) -> str:
    """Check that a step is refused with this code; gives the error's text."""
    with pytest.raises(ScheduleError) as caught:
        step(*args)
    assert caught.value.code == code
    return str(caught.value)
