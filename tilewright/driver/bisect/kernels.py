"""The first kernel whose machine code gives another value than the interpreter.

One compilation exposes every value (see `probe`). A value that differs from the reference is
checked again with the operands that its kernel had, so that small differences which accumulate are
not attributed to the kernel in which they first exceed the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.numeric_error import array_error
from tilewright.driver.bisect.kernel_stages import KernelCase, find_in_kernel
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.probe import probe, values_in_memory
from tilewright.driver.bisect.reference_values import Arrays, ReferenceValues
from tilewright.driver.bisect.report import Finding, group_text, model_nodes
from tilewright.driver.bisect.search import first_wrong
from tilewright.driver.bisect.tolerance import Tolerance, is_finite
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.control.conditional import is_control
from tilewright.ops.registry import get_op


def find_kernel(
    graph: Graph, reference: ReferenceValues, native: NativeRunner, allowed: Tolerance
) -> Finding | None:
    """What is wrong with a model whose graph of kernels is right; `None` if no value is."""
    wanted, sizes = reference.values(graph), reference.sizes(graph)
    probed = probe(graph, values_in_memory(graph))
    outputs = native.run(probed.graph, reference.inputs)
    found = {**wanted, **probed.values(outputs, sizes)}
    moved = [n for n in graph.nodes if _computes(n) and _excess(n, found, wanted, allowed)]
    for n in moved:
        case = _case(graph, n, found, reference, sizes)
        error = case.error([found[o] for o in n.outputs], allowed)
        if error:
            return _with_symptom(_in_kernel(case, error, native, allowed), n, found, case)
    if not moved:
        return None
    first = moved[0]
    error = array_error(found[first.name], wanted[first.name])
    names = model_nodes([first])
    return Finding("rounding", "many kernels", first.name, error, group_text(first), names)


def _computes(n: Node) -> bool:
    return n.op == "fused" or get_op(n.op).kind != "view"


def _excess(n: Node, found: Arrays, wanted: Arrays, allowed: Tolerance) -> bool:
    return any(allowed.excess(found[o], wanted[o]) for o in n.outputs)


def _case(
    graph: Graph, n: Node, values: Arrays, reference: ReferenceValues, sizes: Mapping[str, int]
) -> KernelCase:
    """The node on the operands that the machine code had."""
    arrays = [values[name] if name else None for name in n.inputs]
    types = [graph.types[name] if name else None for name in n.inputs]
    constants = frozenset(name for name in n.inputs if name in graph.constant_by_name)
    wanted = reference.node(n, arrays, types, sizes)
    return KernelCase(n, arrays, types, wanted, sizes, constants)


def _in_kernel(case: KernelCase, error: float, native: NativeRunner, allowed: Tolerance) -> Finding:
    n = case.node
    found = None if is_control(n) else find_in_kernel(case, native, allowed)
    if found is not None:
        return found
    return Finding("kernel", n.name, n.name, error, group_text(n), model_nodes([n]))


def _with_symptom(finding: Finding, n: Node, found: Arrays, case: KernelCase) -> Finding:
    for o, wanted in zip(n.outputs, case.wanted, strict=True):
        if not is_finite(found[o]) and is_finite(wanted):
            finding.details["symptom"] = f"NaN or infinity first appears in {o}"
    return finding


def find_overwritten(
    graph: Graph,
    reference: ReferenceValues,
    outputs: list[np.ndarray],
    native: NativeRunner,
    allowed: Tolerance,
) -> Finding:
    """The value whose place in the arena makes the results of a model wrong."""
    names = values_in_memory(graph)

    def error(found: list[np.ndarray]) -> float:
        pairs = zip(found[: len(outputs)], outputs, strict=True)
        return max(allowed.excess(a, b) for a, b in pairs)

    def is_wrong(number: int) -> bool:
        """Version 0 has no value in the arena, each further one has one more."""
        part = probe(graph, names[number:])
        return bool(error(native.run(part.graph, reference.inputs)))

    last = error(native.run(graph, reference.inputs))
    _, wrong = first_wrong(len(names) + 1, is_wrong)
    value = names[wrong - 1] if wrong else graph.outputs[0]
    node = graph.producer.get(value)
    nodes = [] if node is None else [node]
    text = "" if node is None else group_text(node)
    return Finding("memory", value, value, last, text, model_nodes(nodes))
