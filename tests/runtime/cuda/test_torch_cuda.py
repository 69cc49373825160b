from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tilewright.runtime.cuda.torch_cuda import TorchCuda


def test_what_torch_offers_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch without CUDA has the names, and no streams."""
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda n: 70 + n, raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    there = TorchCuda(torch, 0)
    assert there.stream() == 70
    assert there.is_elsewhere()
    assert there.dtype("bfloat16") is torch.bfloat16
    assert there.dtype("int4_of_nobody") is None
    assert there.is_tensor(torch.zeros(1))
    assert there.gpu_of(torch.zeros(1)) is None
    assert there.gpu_of(SimpleNamespace(is_cuda=True, device=torch.device("cuda", 3))) == 3
    assert there.is_strided(torch.zeros(1))
    assert not there.is_strided(torch.zeros(2, 2).to_sparse())
    assert there.from_dlpack(torch.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("count", "current", "elsewhere"), [(1, 3, False), (2, 0, False), (2, 1, True)]
)
def test_whether_torch_uses_another_gpu_now(count: int, current: int, elsewhere: bool) -> None:
    cuda: Any = SimpleNamespace(
        device_count=lambda: count,
        current_device=lambda: current,
        is_current_stream_capturing=lambda: False,
    )
    fake = SimpleNamespace(
        cuda=cuda,
        is_grad_enabled=torch.is_grad_enabled,
        _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda n: 0, _dynamo=torch._C._dynamo),
    )
    assert TorchCuda(fake).is_elsewhere() == elsewhere


@pytest.mark.gpu
def test_memory_is_that_of_the_current_stream() -> None:
    there = TorchCuda(torch)
    found = there.empty((2, 3), (3, 1), torch.float16)
    assert (found.shape, found.stride(), found.dtype) == ((2, 3), (3, 1), torch.float16)
    assert (there.gpu_of(found), there.capturing()) == (0, False)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert there.stream() == side.cuda_stream
