"""A call of a compiled graph: what it gives, and what is not done in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.frontends.torch.eager import random
from tilewright.compat import torch_backend
from tilewright.compat.torch_backend import CompiledGraph, tilewright

Call = Callable[[], list[Any]]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


class Dispatched(TorchDispatchMode):
    """The operators of torch that run meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def repeated(monkeypatch: pytest.MonkeyPatch, module: nn.Module, *inputs: torch.Tensor) -> Call:
    """The part of another call of the compiled module that is ours."""
    last: list[tuple[CompiledGraph, list[Any]]] = []

    class Noted(CompiledGraph):
        def __call__(self, args: list[Any]) -> list[Any]:
            last[:] = [(self, list(args))]
            return super().__call__(args)

    monkeypatch.setattr(torch_backend, "CompiledGraph", Noted)
    made = torch.compile(module.eval(), backend=tilewright)
    for _ in range(2):
        torch.testing.assert_close(made(*inputs), module(*inputs), rtol=1e-4, atol=1e-5)
    graph, args = last[0]
    return lambda: CompiledGraph.__call__(graph, list(args))


def calls_of_python(call: Call) -> list[str]:
    """The functions written in Python that are called meanwhile."""
    found: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def test_a_call_runs_nothing_of_torch_but_what_hands_over_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = repeated(monkeypatch, nn.Sequential(nn.Linear(4, 4), nn.ReLU()), random(2, 4))
    with Dispatched() as mode:
        call()
    assert mode.names == ["aten.detach.default", "aten.lift_fresh.default"]  # to NumPy and back


def test_a_call_does_nothing_for_each_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    shallow, deep = (nn.Sequential(*[nn.Linear(4, 4) for _ in range(n)]) for n in (1, 5))
    few = calls_of_python(repeated(monkeypatch, shallow, random(2, 4)))
    torch._dynamo.reset()
    assert calls_of_python(repeated(monkeypatch, deep, random(2, 4))) == few
    assert len(few) <= 16, few


def test_a_call_for_each_input_and_result(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pairs(nn.Module):
        def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
            return [x + 1 for x in inputs]

    counts = []
    for number in (1, 2, 4):
        torch._dynamo.reset()
        inputs = [random(number + i, 2) for i in range(number)]
        counts.append(len(calls_of_python(repeated(monkeypatch, Pairs(), *inputs))))
    one = counts[1] - counts[0]
    assert one <= 2
    assert counts[2] - counts[1] == 2 * one


class Mixed(nn.Module):
    """Results of every kind: turned, complex, narrow, an empty one, a number, nothing."""

    def forward(self, x: torch.Tensor, z: torch.Tensor, b: torch.Tensor) -> tuple[Any, ...]:
        return (x @ x).T, (z * z).T, b + 1, x[:0] * 2, x.shape[0] + 1, None, x.sum()


def test_results_of_every_kind() -> None:
    made = torch.compile(Mixed(), backend=tilewright)
    for seed in range(3):
        x = random(3, 3, seed=seed)
        inputs = x.T, torch.view_as_complex(random(2, 3, 2, seed=seed)).conj(), x.bfloat16()[:, 1]
        found, right = made(*inputs), Mixed()(*inputs)
        torch.testing.assert_close(found, right)
        for ours, theirs in zip(found, right, strict=True):
            if isinstance(theirs, torch.Tensor) and theirs.numel():
                assert ours.stride() == theirs.stride()


def test_a_tensor_with_a_lazy_sign_is_read_as_what_it_stands_for() -> None:
    z = torch.view_as_complex(random(3, 2))
    made = torch.compile(lambda x: x * 2, backend=tilewright)
    negated = z.conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(made(negated), negated * 2)
