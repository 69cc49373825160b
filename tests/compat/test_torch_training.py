from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn

from tests.frontends.torch.eager import random
from tilewright.compat import torch_backend
from tilewright.compat.torch_backend import tilewright
from tilewright.ir.graph.nodes import Graph


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


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


def gradients(f: Callable[..., Any], *inputs: torch.Tensor) -> list[torch.Tensor | None]:
    """The result, as `sum(f * its own cosine)` is differentiated, and gradients of the inputs."""
    leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
    y = f(*leaves)
    (y * y.detach().cos()).sum().backward()
    return [y.detach(), *(x.grad for x in leaves)]


def steps(module: nn.Module, x: torch.Tensor, count: int = 3) -> list[torch.Tensor]:
    """Losses of some steps of gradient descent, and what the parameters are after them."""
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    found = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [*found, *(p.detach() for p in module.parameters())]


def test_steps_of_a_module_compile_it_once(compiled: list[Graph]) -> None:
    module = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3, bias=False), nn.GELU())
    twin, x = copy.deepcopy(module), random(4, 5)
    made = torch.compile(module, backend=tilewright)
    torch.testing.assert_close(steps(made, x), steps(twin, x))
    assert len(compiled) == 2, "one forward and one backward graph"
    with torch.no_grad():
        torch.testing.assert_close(made(x), twin(x))
        for parameter in (*module.parameters(), *twin.parameters()):
            parameter.mul_(0.5)
        torch.testing.assert_close(made(x), twin(x))
    torch.testing.assert_close(steps(made, x), steps(twin, x))


def test_inputs_that_ask_for_gradients_and_results_that_have_none() -> None:
    def f(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = x @ w
        return y.softmax(-1), y.argmax(-1), x

    made = torch.compile(f, backend=tilewright)
    for frozen in (False, True):
        x, w = random(3, 4).requires_grad_(), random(4, 5).requires_grad_(not frozen)
        ours, places, same = made(x, w)
        theirs = f(x, w)
        assert same is x
        assert not places.requires_grad
        torch.testing.assert_close(places, theirs[1])
        wanted = [x] if frozen else [x, w]
        seed = random(3, 5, seed=1)
        found = torch.autograd.grad(ours, wanted, seed)
        torch.testing.assert_close(found, torch.autograd.grad(theirs[0], wanted, seed))


def test_parameters_that_are_saved_are_no_copies() -> None:
    module, x = nn.Linear(64, 32), random(2, 64).requires_grad_()
    saved: list[torch.Tensor] = []

    def noted(t: torch.Tensor) -> torch.Tensor:
        saved.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(noted, lambda t: t):
        torch.compile(module, backend=tilewright)(x)
    assert module.weight.data_ptr() in [t.data_ptr() for t in saved]


def test_a_parameter_written_to_before_its_gradient_is_noticed() -> None:
    module, x = nn.Linear(4, 3), random(2, 4).requires_grad_()
    y = torch.compile(module, backend=tilewright)(x)
    with torch.no_grad():
        module.weight.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_several_batches_of_a_dynamic_module(compiled: list[Graph]) -> None:
    module = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 2))
    made = torch.compile(module, backend=tilewright, dynamic=True)
    for batch in (3, 2, 7):
        x = random(batch, 5)
        found = gradients(made, x)
        torch.testing.assert_close(found, gradients(module, x), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 2


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "nesterov": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=True
    ),
    "adam": lambda p: torch.optim.Adam(p, 0.01, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_with_the_optimizer_inside(kind: str, compiled: list[Graph]) -> None:
    def trained(wrapped: Callable[..., Any]) -> list[torch.Tensor]:
        torch.manual_seed(1)
        module = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.LayerNorm(9), nn.Linear(9, 4))
        optimizer = OPTIMIZERS[kind](module.parameters())

        def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
            return loss.detach()

        called = wrapped(step)
        found = []
        for i in range(3):
            found.append(called(random(6, 5, seed=i), torch.arange(6) % 4))
            if i == 1:  # the first step makes the optimizer's state
                count.append(len(compiled))
        return [*found, *(p.detach() for p in module.parameters())]

    count: list[int] = []
    theirs = trained(lambda step: step)
    ours = trained(
        lambda step: torch.compile(step, backend=tilewright, options={"fallback": False})
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert count[-1] == len(compiled), "a later step compiles nothing"


def test_a_module_in_distributed_data_parallel(tmp_path: Path) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        made = torch.compile(nn.parallel.DistributedDataParallel(Scaled()), backend=tilewright)
        with pytest.raises(Exception, match=r"UnsupportedError\[torch\.distributed\]"):
            made(random(4, 3))
    finally:
        torch.distributed.destroy_process_group()
