from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.core.config import override
from tilewright.core.dtypes import F32
from tilewright.core.errors import VerifyError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.cse import cse
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.context import PassContext
from tilewright.passes.manager import pass_doc, run_passes
from tilewright.target.host import host

PASSES = (cse, dce)


def _graph() -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    g.add("exp", x)
    return g.graph(g.add("relu", x, name="y"))


def test_each_pass_is_recorded():
    context = PassContext(host())
    after = run_passes(_graph(), PASSES, context)
    log = context.log
    assert [n.op for n in after.nodes] == ["relu"]
    merged, dead = log.records
    assert (merged.name, merged.changed, merged.nodes_after) == ("cse", False, 2)
    assert (dead.changed, dead.nodes_before, dead.nodes_after) == (True, 2, 1)
    lines = log.table().splitlines()
    assert "(unchanged)" in lines[0]
    assert "2 -> 1" in lines[1]


def test_a_pass_is_described_by_its_function():
    assert pass_doc(dce) == "Remove nodes and constants that no output depends on."


def _misnamed(graph: Graph, context: PassContext) -> Graph:
    return replace(graph, outputs=("nowhere",))


def _mistyped(graph: Graph, context: PassContext) -> Graph:
    last = replace(graph.nodes[-1], types=(tensor(F32, 3),))
    return graph.with_nodes((*graph.nodes[:-1], last))


@for_each(("level", "found"), [(0, ()), (1, (_misnamed,)), (2, (_misnamed, _mistyped))])
@for_each("wrong", [_misnamed, _mistyped])
def test_what_is_verified(level, found, wrong):
    with override(verify=level):
        if wrong in found:
            with pytest.raises(VerifyError):
                run_passes(_graph(), (wrong,), ON_CPU)
        else:
            run_passes(_graph(), (wrong,), ON_CPU)


def test_graphs_are_printed_and_dumped(capsys, tmp_path):
    with override(print_after="dce", dump="passes", dump_dir=str(tmp_path)):
        after = run_passes(_graph(), PASSES, ON_CPU)
    assert capsys.readouterr().out == f"# after dce\n{print_graph(after)}\n"
    assert [p.name for p in (tmp_path / "f").iterdir()] == ["01-dce.txt"]
    assert (tmp_path / "f" / "01-dce.txt").read_text() == print_graph(after)


def test_a_pass_with_nothing_to_do_is_not_run_again_on_the_same_graph():
    runs: list[Graph] = []

    def look(graph: Graph, context: PassContext) -> Graph:
        """Look, and change nothing."""
        runs.append(graph)
        return graph

    context = PassContext(host())
    run_passes(_graph(), (look, look, dce, look, look), context)
    assert len(runs) == 2
    assert [r.name for r in context.log.records] == ["look", "look", "dce", "look", "look"]


def test_each_pass_is_logged(caplog):
    with caplog.at_level(logging.DEBUG, logger="tilewright.passes"):
        run_passes(_graph(), PASSES, PassContext(host()))
    lines = [r.getMessage() for r in caplog.records]
    assert re.fullmatch(r"cse: 2 nodes, unchanged, [0-9.]+ ms", lines[0])
    assert re.fullmatch(r"dce: 2 -> 1 nodes, [0-9.]+ ms", lines[1])
