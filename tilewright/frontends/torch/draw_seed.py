"""Keys of random numbers, drawn from torch's own generator.

After `torch.manual_seed` a program that calls the same compiled functions gives the same numbers.
"""

from __future__ import annotations

import torch

WORD = 2**63


def drawn_seed(device: torch.device | None = None) -> torch.Tensor:
    """The next key from the default generator of a device, of the processor where there is none."""
    return torch.randint(-WORD, WORD - 1, (1,), dtype=torch.int64, device=device)
