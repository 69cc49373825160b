from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule

from tilewright.compat.torch_results import Results


def update() -> GraphModule:
    """`p <- p * g`; gives `g`, the new `p` and `p`."""
    graph = Graph()
    p, g = graph.placeholder("p"), graph.placeholder("g")
    q = graph.call_function(torch.ops.aten.mul.Tensor, (p, g))
    copied = graph.call_function(torch.ops.aten.copy_.default, (p, q))
    graph.output((g, copied, p))
    return GraphModule(torch.nn.Module(), graph)


def test_arguments_are_no_results_and_copies_are_made_after_the_run() -> None:
    results = Results.of(update())
    assert results.arguments == (1, None, 0)
    assert results.written == (0,)
    p, g = torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0])
    kept = results.kept([p, g])
    assert kept == {0: p, 1: g}
    computed = results.graph(p, g)
    assert [t.tolist() for t in computed] == [[10.0, 21.0], [10.0, 21.0]]
    assert p.tolist() == [2.0, 3.0]
    found = results.joined(kept, computed)
    assert found[0] is g
    assert found[2] is p
    assert [t.tolist() for t in found[1:]] == [[10.0, 21.0], [10.0, 21.0]]


def test_a_graph_that_writes_to_nothing_stays_as_it_is() -> None:
    module = update()
    (copied,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    copied.replace_all_uses_with(copied.args[1])
    module.graph.erase_node(copied)
    results = Results.of(module)
    assert results.written == ()
    assert results.kept([1, 2, 3]) == {0: 1, 1: 2}
    assert len(results.graph(torch.ones(2), torch.ones(2))) == 1
