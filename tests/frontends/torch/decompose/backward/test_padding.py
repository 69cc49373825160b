from __future__ import annotations

import pytest
import torch.nn.functional as F

from tests.frontends.torch.eager import check_gradients, random


@pytest.mark.parametrize("pads", [(2, 1, 1, 3, 0, 4), (0, 3, -1, 2, -2, -1)])
def test_copies_of_the_border(pads: tuple[int, ...]) -> None:
    check_gradients(lambda x: F.pad(x, pads[:2], "replicate"), random(2, 3, 6))
    check_gradients(lambda x: F.pad(x, pads[:4], "replicate"), random(2, 3, 6, 7))
    check_gradients(lambda x: F.pad(x, pads, "replicate"), random(2, 5, 6, 7))


def test_reflection() -> None:
    check_gradients(lambda x: F.pad(x, (2, 1), "reflect"), random(2, 3, 6))
    check_gradients(lambda x: F.pad(x, (2, 1, 1, 3), "reflect"), random(2, 3, 6, 7))
