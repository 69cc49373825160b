"""The first pass after which a graph computes something else, and the node that it changed.

Nothing is compiled for that: graphs are interpreted. A value keeps its name through a pass, or the
pass has logged its replacement (see `passes.rewrite_log`), so that the values before and after the
pass can be compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.numeric_error import array_error
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.bisect.report import Finding, group_text, model_nodes
from tilewright.driver.bisect.tolerance import Tolerance, is_finite
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes.context import Pass, PassContext
from tilewright.passes.manager import pass_name, run_passes
from tilewright.passes.rewrite_log import Rewrite, recorded


@dataclass(frozen=True)
class Change:
    """What one pass did: the graph before and after it, and the nodes that it has replaced."""

    name: str
    number: int
    before: Graph
    after: Graph
    rewrites: tuple[Rewrite, ...]


def changes(graph: Graph, passes: Iterable[Pass], context: PassContext) -> list[Change]:
    """What each pass changes, in order; those that change nothing are left out."""
    found = []
    for number, p in enumerate(passes, 1):
        with recorded() as rewrites:
            after = run_passes(graph, (p,), context)
        if after is not graph:
            found.append(Change(pass_name(p), number, graph, after, tuple(rewrites)))
        graph = after
    return found


def find_pass(
    reference: ReferenceValues,
    wanted: Sequence[np.ndarray],
    made: Sequence[Change],
    allowed: Tolerance,
) -> Finding | None:
    """The first change after which an output differs from what is wanted."""
    for change in made:
        found = reference.outputs(change.after)
        errors = [allowed.excess(a, b) for a, b in zip(found, wanted, strict=True)]
        if any(errors):
            return _finding(reference, change, max(errors), allowed)
    return None


def _finding(
    reference: ReferenceValues, change: Change, error: float, allowed: Tolerance
) -> Finding:
    before, after = reference.values(change.before), reference.values(change.after)
    details = {"pass": f"number {change.number} of the pipeline"}
    found = _first_moved(change, before, after, allowed)
    if found is None:
        return Finding("pass", change.name, "", error, details=details)
    old, new = found
    node = change.before.producer.get(old)
    error = array_error(after[new], before[old])
    rules = ", ".join(r.rule for r in change.rewrites if old in r.values and r.rule)
    if rules:
        details["rule"] = rules
    if not is_finite(after[new]) and is_finite(before[old]):
        details["symptom"] = f"NaN or infinity first appears in {new}"
    group = change.after.producer.get(new)
    if group is not None and group.op == "fused":
        names, text = model_nodes([group]), group_text(group)
        return Finding("fusion", change.name, new, error, text, names, details)
    names = model_nodes([] if node is None else [node])
    details["became"] = _text(change.after, group, new)
    op = "constant" if node is None else node.op
    return Finding("pass", change.name, old, error, op, names, details)


def _first_moved(
    change: Change,
    before: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    allowed: Tolerance,
) -> tuple[str, str] | None:
    """The first value of the graph before that differs after, and its name there."""
    names = {
        value: result
        for r in change.rewrites
        for value, result in zip(r.values, r.results, strict=True)
        if value != result
    }
    for value in before:
        now = _followed(value, names)
        if now not in after or after[now].shape != before[value].shape:
            continue
        if allowed.excess(after[now], before[value]):
            return value, now
    return None


def _followed(value: str, names: Mapping[str, str]) -> str:
    """The last replacement of a value; each one may have been replaced again."""
    seen = {value}
    while value in names and names[value] not in seen:
        value = names[value]
        seen.add(value)
    return value


def _text(graph: Graph, node: Node | None, value: str) -> str:
    if node is None:
        return f"%{value}, a {'constant' if value in graph.constant_by_name else 'input'}"
    return f"{node.op}({', '.join('%' + i for i in node.inputs)})"
