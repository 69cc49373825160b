from __future__ import annotations

import torch

from tilewright.frontends.torch.draw_seed import drawn_seed


def test_the_seed_of_torch_repeats_keys() -> None:
    torch.manual_seed(5)
    first, second = drawn_seed(), drawn_seed()
    assert first.dtype == torch.int64
    assert first.shape == (1,)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    assert torch.equal(drawn_seed(), first)
    torch.manual_seed(6)
    assert not torch.equal(drawn_seed(), first)
