"""A kernel that is wrong at each point of its way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.driver.bisect.deep_model import deep_input, deep_model
from tests.driver.bisect.test_kernels import negated
from tilewright.driver.bisect import kernel_stages
from tilewright.driver.bisect.kernel_stages import KernelCase, find_in_kernel
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.bisect.tolerance import Tolerance
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.options import make_options
from tilewright.finalize.cpu import pipeline
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.lower import lower_kernel
from tilewright.target.host import host

ALLOWED = Tolerance(1e-3)


def case() -> tuple[KernelCase, NativeRunner]:
    native = NativeRunner(host())
    graph = optimized_graph(deep_model(2), make_options())
    reference = ReferenceValues(deep_input(), native.run_unscheduled)
    values, n = reference.values(graph), graph.nodes[1]
    arrays = [values[name] for name in n.inputs]
    types = [graph.types[name] for name in n.inputs]
    constants = frozenset(graph.constant_by_name)
    wanted = [values[o] for o in n.outputs]
    return KernelCase(n, arrays, types, wanted, reference.sizes(graph), constants), native


@pytest.mark.parametrize("limit", [0, kernel_stages.INTERPRETED])
def test_a_kernel_that_is_right(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(kernel_stages, "INTERPRETED", limit)
    assert find_in_kernel(*case(), ALLOWED) is None


def test_wrong_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    right = lower_kernel.program_func
    monkeypatch.setattr(lower_kernel, "program_func", lambda program: negated(right(program)))
    finding = find_in_kernel(*case(), ALLOWED)
    assert finding is not None
    assert finding.kind == "lowering"


def test_a_wrong_step_of_finalization(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dict(pipeline.STEPS)["unroll"]

    def wrong(func: Func) -> Func:
        return negated(right(func))

    wrong_steps = [(n, wrong if n == "unroll" else step) for n, step in pipeline.STEPS]
    monkeypatch.setattr(pipeline, "STEPS", tuple(wrong_steps))
    finding = find_in_kernel(*case(), ALLOWED)
    assert finding is not None
    assert (finding.kind, finding.name) == ("finalize", "unroll")


def test_half_a_schedule_keeps_large_buffers_off_the_stack() -> None:
    made, _ = case()
    text = "func @f(x: f32[N], out y: f32[N]) {{ alloc t: f32[N] @{scope} {{ {body} }} }}"
    body = "for i in serial(N) { t[i] = x[i] y[i] = t[i] }"
    func = parse_func(text.format(scope="local", body=body))
    assert kernel_stages._off_the_stack(func, replace(made, sizes={"N": 100})) is func
    moved = kernel_stages._off_the_stack(func, replace(made, sizes={"N": 1 << 16}))
    assert print_func(moved) == print_func(parse_func(text.format(scope="global", body=body)))
