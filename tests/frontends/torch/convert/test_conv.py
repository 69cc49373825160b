from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.frontends.torch.eager import check, random

FORMS: list[dict[str, Any]] = [
    {}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"groups": 2},
    {"groups": 4, "bias": False},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_convolutions(form: dict[str, Any]) -> None:
    check(torch.nn.Conv1d(4, 8, 3, **form), random(2, 4, 9), atol=1e-5)
    check(torch.nn.Conv2d(4, 8, 3, **form), random(2, 4, 9, 7), atol=1e-5)
    check(torch.nn.Conv3d(4, 8, 3, **form), random(1, 4, 5, 6, 7), atol=1e-5)


@pytest.mark.parametrize("form", [*FORMS, {"stride": 3, "output_padding": 1}])
def test_transposed(form: dict[str, Any]) -> None:
    check(torch.nn.ConvTranspose1d(4, 8, 3, **form), random(2, 4, 5), atol=1e-5)
    check(torch.nn.ConvTranspose2d(4, 8, 3, **form), random(2, 4, 5, 4), atol=1e-5)


def test_without_batch_and_with_named_padding() -> None:
    check(torch.nn.Conv2d(3, 2, (3, 5), padding="same"), random(3, 6, 7), atol=1e-5)
    check(
        torch.nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"), random(1, 3, 6, 7), atol=1e-5
    )


def test_computed_weights() -> None:
    check(torch.nn.functional.conv2d, random(1, 3, 5, 5), random(2, 3, 3, 3), random(2), atol=1e-5)
