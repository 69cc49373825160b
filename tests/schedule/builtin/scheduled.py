"""Kernels under the built-in schedules: which rule they get, and that it keeps their meaning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tests.finalize.kernel_steps import run, sample
from tilewright.arith.evaluate import evaluate
from tilewright.core.config import override
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import CompileOptions
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import For, Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.loop.walk import loops
from tilewright.lower.lower_kernel import lower_group, lower_loops
from tilewright.ops.interpret import run_outputs
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.registry import CPUS
from tilewright.target.target import Target

AARCH64 = CPUS["aarch64"]
# Relative and absolute, by the bytes of a number: sums in another order differ in the last bits.
TOLERANCE = {2: (5e-3, 1e-3), 4: (1e-4, 1e-5), 8: (1e-4, 1e-5)}


def sources(graph: Graph, machine: Target | None = None) -> list[tuple[Func, frozenset[str]]]:
    """The loops of every kernel of a model for a machine, and which parameters are constants."""
    fused = optimized_graph(graph, CompileOptions(machine or host()))
    found = []
    for n in fused.nodes:
        if n.op == "reshape":
            continue
        types = [fused.types[i] if i else None for i in n.inputs]
        func = (lower_group(n.regions[0]) if n.regions else lower_loops(n, types)).func
        names = [p.name for p in func.params]
        given = [name for name in n.inputs if name]
        constants = (i for i, name in enumerate(given) if name in fused.constant_by_name)
        found.append((func, frozenset(names[i] for i in constants)))
    return found


def operator_results(
    graph: Graph, func: Func, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """What the operators of a graph give for the arguments of `func`, the one kernel that it is.

    NumPy runs them whole, which takes far less time than loops step by step.
    """
    (node,) = optimized_graph(graph, CompileOptions(host())).nodes
    (group,) = node.regions
    given = {}
    for value, param in zip(group.inputs, func.params, strict=False):
        shape = [evaluate(d, sizes) for d in group.tensor_type(value.name).shape]
        given[value.name] = arrays[param.name].reshape(shape)
    return dict(zip(func.outputs, run_outputs(group, given, sizes), strict=True))


def assert_replays(func: Func, result: ScheduledFunc) -> None:
    """The trace alone makes the same program, of which every step was verified before."""
    with override(verify=0):
        assert result.trace.replay(func) == result.func


def scheduled(graph: Graph, target: CpuTarget = AARCH64) -> list[ScheduledFunc]:
    """Every kernel scheduled, its trace replayed."""
    results = []
    for func, constants in sources(graph):
        result = schedule_func(func, constants, target)
        verify_func(result.func)
        assert_replays(func, result)
        results.append(result)
    return results


def check(graph: Graph, sizes: Mapping[str, int], target: CpuTarget = AARCH64) -> list[str]:
    """Scheduled kernels compute what the loops they came from do; the rules."""
    rules = []
    for func, constants in sources(graph):
        result = schedule_func(func, constants, target)
        arrays = sample(result.func, sizes)
        expected = {o: a.copy() for o, a in run(func, arrays, sizes).items()}
        found = run(result.func, arrays, sizes)
        for name, array in expected.items():
            if array.dtype.kind == "f":
                # A sum of nothing: loops that are not scheduled yet do not even start it.
                assert not np.isnan(found[name]).any()
                started = ~np.isnan(array)
                rtol, atol = TOLERANCE[array.dtype.itemsize]
                np.testing.assert_allclose(found[name][started], array[started], rtol, atol)
            else:
                np.testing.assert_array_equal(found[name], array)
        rules.append(result.rule)
    return rules


def kinds(func: Func) -> dict[str, list[str]]:
    """The names of loops by how they run."""
    found: dict[str, list[str]] = {}
    for loop in loops(func.body):
        assert isinstance(loop, For)
        found.setdefault(loop.kind, []).append(loop.name)
    return found
