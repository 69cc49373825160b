from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from tests.frontends.torch.eager import Function, check, imported, random
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.importer import import_fx
from tilewright.frontends.torch.symbolic_shapes import Sizes, unbound_symbols
from tilewright.ops.interpret import run_graph


def traced(function: Function, *inputs: object) -> GraphModule:
    """A function on ATen operators, with symbolic sizes."""
    return make_fx(function, tracing_mode="symbolic")(*inputs)


def test_an_unknown_operator_is_named_with_its_place() -> None:
    with pytest.raises(UnsupportedError) as caught:
        imported(torch.geqrf, random(3, 3))
    text = str(caught.value)
    assert "the operator aten.geqrf.default is not supported" in text
    assert "test_importer.py" in text or "eager.py" in text
    assert "node geqrf" in text


def test_results_that_are_inputs_or_the_same_twice() -> None:
    check(lambda x: (x, x + 1, x), random(2))

    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y, y

    check(twice, random(2))


def test_symbolic_sizes() -> None:
    module = traced(lambda x: x.reshape(x.shape[0] * 2, -1).sum(1), random(4, 6))
    graph = import_fx(module, {}).graph
    assert len(graph.symbols()) == 2
    assert unbound_symbols(module) == []
    for shape in ((4, 6), (3, 8)):
        x = random(*shape)
        found = run_graph(graph, {graph.inputs[0].name: x.numpy()})[graph.outputs[0]]
        right = x.reshape(shape[0] * 2, -1).sum(1).numpy()
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_numbers_as_results() -> None:
    done = import_fx(traced(lambda x: (x.shape[0] + 1, x * 2), random(4, 6)), {})
    assert done.kinds == (int, torch.Tensor)
    found = run_graph(done.graph, {done.graph.inputs[0].name: random(5, 2).numpy()})
    assert found[done.graph.outputs[0]] == 6


def test_a_number_that_no_input_says() -> None:
    module = traced(lambda x, k: x * k, random(3), 7)
    symbols = unbound_symbols(module)
    assert len(symbols) == 1
    graph = import_fx(module, {}, Sizes({symbols[0]: 5})).graph
    found = run_graph(graph, {graph.inputs[0].name: np.ones(4, np.float32)})
    assert found[graph.outputs[0]].tolist() == [5.0] * 4


def test_a_result_that_is_not_offered() -> None:
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    x = random(1, 2, 3, 4)
    with pytest.raises(UnsupportedError, match=r"result 1 of aten._scaled_dot_product_flash"):
        imported(lambda x: attention(x, x, x), x)


def test_assertions_on_values_are_refused() -> None:
    def asserting(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > 0).all(), "negative")
        return x + 1

    with pytest.raises(UnsupportedError, match=r"_assert_async.msg: assertions on values") as found:
        imported(asserting, random(2, 3))
    assert found.value.code == "torch.values"
    functional = torch.ops.aten._functional_assert_async.msg
    with pytest.raises(UnsupportedError, match=r"_functional_assert_async"):
        imported(lambda x: functional((x > 0).all(), "negative", x[:0]), random(2, 3))


def test_numbers_out_of_tensors_are_refused() -> None:
    class Checked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch._check(x.sum().to(torch.int64).item() > 3)
            return x + 1

    program = torch.export.export(Checked(), (torch.ones(6),)).run_decompositions()
    with pytest.raises(UnsupportedError, match="numbers out of tensors"):
        import_fx(program.graph_module, {})


def test_checks_of_sizes_are_what_tracing_assumed() -> None:
    def checking(x: torch.Tensor) -> torch.Tensor:
        torch.ops.aten.sym_constrain_range_for_size(x.shape[0], min=2, max=9)
        torch.ops.aten._assert_scalar(x.shape[0] > 1, "too few")
        return x + 1

    module = traced(checking, random(4, 6))
    assert "_assert_scalar" in module.code
    assert len(import_fx(module, {}).graph.nodes) == 1
