"""Running passes in order: timing, verification, dumps, and a record of what each did."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tilewright.core.config import config
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.unify_dims import unify_dims
from tilewright.passes.context import Pass, PassContext, PassRecord
from tilewright.passes.regions import map_regions

_LOG = logging.getLogger(__name__)

# Passes that visit the regions of control flow themselves. All others are applied to each region,
# innermost first, as to a graph of its own.
RECURSES: tuple[Pass, ...] = (unify_dims,)


def pass_name(p: Pass) -> str:
    """The name of a pass: that of its function, and of its file."""
    name: str = getattr(p, "__name__")  # noqa: B009  a Callable has none for the type checker
    return name


def pass_doc(p: Pass) -> str:
    """The first line of a pass's documentation."""
    return (p.__doc__ or "").strip().partition("\n")[0]


def apply_pass(p: Pass, graph: Graph, context: PassContext) -> Graph:
    """The graph after a pass, its regions included."""
    if p in RECURSES:
        return p(graph, context)
    return p(map_regions(graph, partial(apply_pass, p, context=context)), context)


def run_passes(graph: Graph, passes: Iterable[Pass], context: PassContext) -> Graph:
    """Apply `passes` in order; one that left a graph as it is has nothing to do there again."""
    settled: dict[Pass, Graph] = {}
    kept = context.log.graphs
    if kept is not None:
        kept.append(graph)
    for number, p in enumerate(passes):
        start = time.perf_counter()
        result = graph if settled.get(p) is graph else apply_pass(p, graph, context)
        seconds = time.perf_counter() - start
        changed = result is not graph
        before, after = len(graph.nodes), len(result.nodes)
        context.log.records.append(PassRecord(pass_name(p), seconds, before, after, changed))
        nodes = f"{before} -> {after} nodes" if changed else f"{before} nodes, unchanged"
        _LOG.debug("%s: %s, %.1f ms", pass_name(p), nodes, seconds * 1e3)
        if changed:
            _verify(result)
        else:
            settled[p] = graph
        _show(result, pass_name(p), number, changed)
        graph = result
        if kept is not None:
            kept.append(graph)
    return graph


def _verify(graph: Graph) -> None:
    level = config().verify
    if level >= 1:
        verify_graph(graph)
    if level >= 2:
        check_types(graph)


def _show(graph: Graph, name: str, number: int, changed: bool) -> None:
    settings = config()
    if {name, "all"} & set(settings.print_after):
        print(f"# after {name}{'' if changed else ' (unchanged)'}")
        print(print_graph(graph))
    if changed and settings.dump == "passes":
        folder = Path(settings.dump_dir) / graph.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:02d}-{name}.txt").write_text(print_graph(graph))
