"""Scheduled kernels taken through the steps of finalization, each compared by the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr
from tilewright.core.dtypes import BOOL
from tilewright.driver.artifact.packed_weights import pack
from tilewright.driver.compile_graph import lower_graph, optimized_graph
from tilewright.driver.options import CompileOptions, make_options
from tilewright.finalize.combine_loads import combine_loads
from tilewright.finalize.cpu.pipeline import STEPS
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, Func
from tilewright.ir.scalar_semantics import undefined
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Scheduled:
    """A kernel's scheduled function, the rule that scheduled it, and the sizes it is given."""

    func: Func
    rule: str
    given: Mapping[str, Expr]

    def sizes(self, model: Mapping[str, int]) -> dict[str, int]:
        """Its sizes where the model has these."""
        return {**model, **{name: evaluate(size, model) for name, size in self.given.items()}}


def kernels(graph: Graph, target: CpuTarget = CPUS["aarch64"]) -> Iterator[Scheduled]:
    """The distinct kernels of a model."""
    build = lower_graph(optimized_graph(graph, make_options()), CompileOptions(target))
    for kernel in build.distinct_kernels.values():
        given = dict(zip(kernel.dim_params, kernel.dim_args, strict=True))
        yield Scheduled(kernel.scheduled.func, kernel.rule, given)


def sample(func: Func, sizes: Mapping[str, int], seed: int = 0) -> Arrays:
    """Arrays for the parameters in the layout that callers have; indices stay small."""
    rng = np.random.default_rng(seed)
    logical = {name: layout.logical for name, layout in func.layouts}
    found = {}
    for p in func.params:
        shape = [evaluate(d, sizes) for d in logical.get(p.name, p.shape)]
        if p.name in func.outputs:
            found[p.name] = np.full(shape, undefined(p.dtype))
        elif p.dtype.is_float:
            found[p.name] = rng.standard_normal(shape).astype(p.dtype.numpy)
        else:
            found[p.name] = rng.integers(0, 2 if p.dtype == BOOL else 3, shape).astype(
                p.dtype.numpy
            )
    return found


def run(func: Func, arrays: Arrays, sizes: Mapping[str, int]) -> Arrays:
    """The outputs, flat; constants are packed, flat parameters and workspaces are made."""
    layouts = dict(func.layouts)
    given = {n: pack(a, layouts[n]) if n in layouts else a for n, a in arrays.items()}
    own = {p.name: _array(p, given.get(p.name), sizes) for p in func.params}
    run_func(func, own, sizes)
    return {name: own[name].reshape(-1) for name in func.outputs}


def _array(p: Buffer, given: np.ndarray | None, sizes: Mapping[str, int]) -> np.ndarray:
    shape = tuple(evaluate(d, sizes) for d in p.shape)
    if given is None:
        return np.full(shape, undefined(p.dtype))
    return np.array(given).reshape(shape)


def check_steps(func: Func, sizes: Mapping[str, int], target: CpuTarget = CPUS["aarch64"]) -> Func:
    """Every step gives the same numbers, and touches nothing out of bounds; the plain function."""
    arrays = sample(func, sizes)
    expected = run(func, arrays, sizes)
    for name, step in (*STEPS, ("combine-loads", lambda f: combine_loads(f, target))):
        func = step(func)
        found = run(func, arrays, sizes)
        for output, array in expected.items():
            if name in ("expand-math", "combine-loads"):  # a polynomial instead of the function
                a, b = found[output].astype("f8"), array.astype("f8")
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(found[output], array, err_msg=name)
    return func
