"""What cannot be compiled runs in eager between compiled parts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.nn import functional as F

from tests.frontends.torch.eager import random
from tilewright.compat import torch_backend, torch_partition
from tilewright.compat.torch_backend import tilewright
from tilewright.compat.torch_partition import EagerWarning
from tilewright.core.errors import CodegenError, UnsupportedError
from tilewright.frontends.torch import table
from tilewright.ir.graph.nodes import Graph


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No operator has been said yet; those of these tests are taken from the converters."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch_partition, "_said", set())
    left = {k: v for k, v in table.converters().items() if k not in ("aten.erf", "aten.topk")}
    monkeypatch.setattr(table, "converters", lambda: left)
    with torch.no_grad():
        yield


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs that are compiled meanwhile."""
    found: list[Graph] = []
    compile = torch_backend.compile

    def noted(graph: Graph, **options: Any) -> Any:
        found.append(graph)
        return compile(graph, **options)

    monkeypatch.setattr(torch_backend, "compile", noted)
    return found


def same(function: Callable[..., Any], *inputs: Any, **options: Any) -> Callable[..., Any]:
    """The compiled function, which gives what the function does; it warns."""
    made: Callable[..., Any] = torch.compile(function, backend=tilewright, **options)
    with pytest.warns(EagerWarning):
        found = made(*inputs)
    torch.testing.assert_close(found, function(*inputs), rtol=1e-4, atol=1e-5)
    return made


class Middle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 7), nn.Linear(7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.second(torch.erf(self.first(x)))) + 1


def test_an_operator_between_two_parts(compiled: list[Graph]) -> None:
    made = same(Middle().eval(), random(4, 5))
    assert len(compiled) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for shape in ((4, 5), (9, 5)):  # it has been said
            x = random(*shape)
            assert made(x).shape == (shape[0], 3)


def test_the_warning_names_the_operator() -> None:
    made = torch.compile(lambda x: x.erf() + x.erf().erf(), backend=tilewright)
    with pytest.warns(EagerWarning, match=r"aten\.erf\.default runs in eager: .*not sup") as said:
        made(random(3))
    assert len(said) == 1


def test_weights_of_parts_are_constants(compiled: list[Graph]) -> None:
    module = Middle().eval()
    made = same(module, random(4, 5))
    assert [len(graph.inputs) for graph in compiled] == [1, 1]
    module.second.bias.add_(1)
    x = random(4, 5, seed=1)
    torch.testing.assert_close(made(x), module(x))
    assert len(compiled) == 3


def test_operators_of_several_results() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = torch.topk(x * 2, 2)
        largest, where = x.max(1)
        return values + 1, places * 2, largest * values[:, 0], where, x.erf()

    same(function, random(4, 5))


def test_nothing_but_eager(compiled: list[Graph]) -> None:
    same(torch.erf, random(3, 2))
    assert not compiled


@pytest.mark.parametrize("dynamic", [True, False])
def test_sizes_that_stay_open(dynamic: bool, compiled: list[Graph]) -> None:
    def function(x: torch.Tensor, by: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        y = torch.cat([x, x]).erf()
        z = y.reshape(-1, 2) * by + y.shape[0]
        return z, torch.arange(x.shape[0] * 2) + by, y.shape[0] * by

    made = same(function, random(4, 6), 3, dynamic=dynamic)
    for rows, by in ((5, 3), (8, 2)):
        x = random(rows, 6)
        for ours, theirs in zip(made(x, by), function(x, by), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_numbers_out_of_tensors() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * 2 + y.sum().item()).relu()

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        made = same(function, random(3), torch.tensor([2, 3]))
        x, y = random(3), torch.tensor([4, 5])
        torch.testing.assert_close(made(x, y), function(x, y))


def test_a_type_that_we_do_not_have() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 2).to(torch.float8_e4m3fn).to(torch.float32) + 1

    same(function, random(4, 3))


def test_memory_order_of_what_eager_is_given() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        turned = (x * 2).transpose(0, 1) + 1
        return torch.as_strided(turned.erf() + 1, (2, 3), (1, 2)) * 2

    made = torch.compile(function, backend=tilewright)
    x = random(4, 5)
    with pytest.warns(EagerWarning):
        torch.testing.assert_close(made(x), function(x))


def test_a_graph_that_the_compiler_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(graph: Graph, **options: Any) -> Any:
        raise CodegenError("codegen.test", "no such machine")

    monkeypatch.setattr(torch_backend, "compile", refuse)
    same(lambda x: x + 1, random(3))


@pytest.mark.parametrize("options", [{"fullgraph": True}, {"options": {"fallback": False}}])
def test_it_may_be_an_error(options: dict[str, Any]) -> None:
    made = torch.compile(Middle().eval(), backend=tilewright, **options)
    with pytest.raises(UnsupportedError, match=r"aten\.erf\.default is not supported"):
        made(random(4, 5))


def test_it_may_be_asked_for_in_one_graph(compiled: list[Graph]) -> None:
    same(Middle().eval(), random(4, 5), fullgraph=True, options={"fallback": True})
    assert len(compiled) == 2


def test_a_result_that_is_not_offered_is_that_of_eager() -> None:
    def statistics(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> Any:
        found = torch.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)
        return found[0] * 2, found[1] + 1

    same(statistics, random(4, 3, 5), random(3), random(3).abs())
