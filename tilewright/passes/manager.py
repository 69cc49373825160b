"""Running passes in order: timing, verification, dumps, and a record of what each did."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.core.config import config
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.fuse import WhyNotFused
from tilewright.passes.regions import map_regions


@dataclass(frozen=True)
class GraphPass:
    """A named pure function Graph → Graph; it returns the same object where it changed nothing.

    It sees one graph at a time: the branches of control flow first, each as a graph of its own. A
    pass over the `whole` goes into the branches itself.
    """

    name: str
    run: Callable[[Graph], Graph]
    whole: bool = False

    def apply(self, graph: Graph) -> Graph:
        """The graph after the pass, its branches included."""
        return self.run(graph if self.whole else map_regions(graph, self.apply))

    @property
    def doc(self) -> str:
        """The first line of the function's documentation."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


@dataclass(frozen=True)
class PassRecord:
    """What one run of a pass did."""

    name: str
    seconds: float
    nodes_before: int
    nodes_after: int
    changed: bool


@dataclass
class PassLog:
    """The records of a pipeline, in order.

    `notes` are what passes say about single nodes: in which precision each runs, and why.
    `refusals` are the producers and consumers that fusion left apart.
    """

    records: list[PassRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refusals: list[WhyNotFused] = field(default_factory=list)

    def table(self) -> str:
        """One line a pass: time, node count before and after."""
        lines = []
        for r in self.records:
            change = f"{r.nodes_before} -> {r.nodes_after}" if r.changed else "(unchanged)"
            lines.append(f"{r.name:28} {r.seconds * 1e3:9.1f} ms   {change}")
        return "\n".join(lines)


def run_passes(graph: Graph, passes: Iterable[GraphPass], log: PassLog | None = None) -> Graph:
    """Apply `passes` in order; one that left a graph as it is has nothing to do there again."""
    settled: dict[str, Graph] = {}
    for number, p in enumerate(passes):
        start = time.perf_counter()
        result = graph if settled.get(p.name) is graph else p.apply(graph)
        seconds = time.perf_counter() - start
        changed = result is not graph
        if log is not None:
            before, after = len(graph.nodes), len(result.nodes)
            log.records.append(PassRecord(p.name, seconds, before, after, changed))
        if changed:
            _verify(result)
        else:
            settled[p.name] = graph
        _show(result, p.name, number, changed)
        graph = result
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
