"""Train a small network with PyTorch, then run it with `torch.compile(backend="tilewright")`.

    pip install torch
    python examples/torch_module.py

The network learns which of two spirals a point lies on. Training is torch's own. Inference is
compiled by Tilewright, for batches of any size, and agrees with eager mode.
"""

from __future__ import annotations

import argparse
import math
import sys

try:
    import torch
    from torch import nn
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")


def main() -> None:
    """Train, compile, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of training")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # layers as small as these gain nothing from more
    layers = [nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)]
    module = nn.Sequential(*layers)
    train(module, *spirals(500), arguments.steps)

    compiled = torch.compile(module.eval(), backend="tilewright", dynamic=True)
    with torch.no_grad():
        for count in (10, 1000):
            points, labels = spirals(count)
            eager, ours = module(points), compiled(points)
            right = (ours.argmax(1) == labels).float().mean()
            difference = (ours - eager).abs().max()
            print(f"{count} points: {right:.1%} right, {difference:.1e} from eager mode")


def spirals(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points near two spirals, and which of the two each is near."""
    labels = torch.randint(2, (count,))
    radius = torch.rand(count) ** 0.5
    angle = math.pi * (3 * radius + labels)
    points = radius * torch.stack([angle.cos(), angle.sin()])
    return points.T + 0.02 * torch.randn(count, 2), labels


def train(module: nn.Module, points: torch.Tensor, labels: torch.Tensor, steps: int) -> None:
    """Fit the module to the labels."""
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(points), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
