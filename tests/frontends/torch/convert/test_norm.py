from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.frontends.torch.eager import check, ops, random


def trained(module: nn.Module) -> nn.Module:
    """With statistics and parameters that are not those of the beginning."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return module.eval()


def test_batch_norm() -> None:
    check(trained(nn.BatchNorm1d(4)), random(3, 4), atol=1e-5)
    check(trained(nn.BatchNorm1d(4, affine=False)), random(3, 4, 5), atol=1e-5)
    graph = check(trained(nn.BatchNorm2d(4)), random(2, 4, 3, 3), atol=1e-5)
    assert ops(graph) == ["mul", "add"]


def test_batch_norm_by_its_own_statistics() -> None:
    check(nn.BatchNorm2d(4, track_running_stats=False), random(2, 4, 3, 3), atol=1e-5)
    check(nn.InstanceNorm2d(4, affine=True), random(2, 4, 3, 3), atol=1e-5)


def test_statistics_that_are_computed() -> None:
    parts = [random(4, seed=i).abs() + 0.1 for i in range(4)]
    check(lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), random(2, 4, 3), *parts, atol=1e-5)


@pytest.mark.parametrize("shape", [(5,), (4, 5)])
def test_layer_norm(shape: tuple[int, ...]) -> None:
    graph = check(trained(nn.LayerNorm(shape)), random(3, 4, 5), atol=1e-5)
    assert ops(graph) == ["layer_norm"]
    check(nn.LayerNorm(shape, elementwise_affine=False), random(3, 4, 5), atol=1e-5)
    check(trained(nn.RMSNorm(shape)), random(3, 4, 5), atol=1e-5)
    check(nn.RMSNorm(shape, 1e-3, elementwise_affine=False), random(3, 4, 5), atol=1e-5)


def test_group_norm() -> None:
    check(trained(nn.GroupNorm(2, 6)), random(2, 6, 3, 4), atol=1e-5)
    check(nn.GroupNorm(3, 6, affine=False), random(2, 6), atol=1e-5)


def test_softmax() -> None:
    x = random(2, 3, 4)
    check(lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(1), F.softmin(x, 1)), x)
    check(lambda x: x.softmax(0), torch.tensor(2.0))
    check(lambda x: x.softmax(-1, dtype=torch.float64), x)
    check(lambda x: F.normalize(x, dim=1), x)
