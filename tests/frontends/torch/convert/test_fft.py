"""Fourier transforms of torch, over any axes and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch._dynamo
from torch import fft

from tests.for_each import for_each
from tests.frontends.torch.convert.test_complex import numbers
from tests.frontends.torch.eager import check, random
from tilewright.compat.torch_backend import tilewright
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.capture import import_torch

Transform = Callable[[torch.Tensor], torch.Tensor]


@for_each("norm", ["backward", "ortho", "forward"])
@for_each("transform", [fft.fft, fft.ifft, fft.rfft, fft.ihfft], ids=lambda f: f.__name__)
def test_real_numbers(transform: Callable[..., torch.Tensor], norm: str) -> None:
    for size in (1, 2, 7, 12, 101):
        check(lambda x: transform(x, norm=norm), random(3, size), rtol=1e-4, atol=1e-5)


@for_each("norm", ["backward", "ortho", "forward"])
@for_each("transform", [fft.fft, fft.ifft, fft.irfft, fft.hfft], ids=lambda f: f.__name__)
def test_complex_numbers(transform: Callable[..., torch.Tensor], norm: str) -> None:
    for size in (2, 7, 12):
        z = numbers(3, size, dtype=torch.complex128)
        check(lambda x: transform(x, norm=norm), z, rtol=1e-9, atol=1e-9)


SEVERAL: list[Transform] = [
    fft.fft2, fft.ifft2, fft.rfft2, fft.fftn, fft.rfftn, lambda x: fft.irfftn(fft.rfftn(x)),
    lambda x: fft.fftn(x, dim=(2, 0), norm="ortho"), lambda x: fft.rfftn(x, dim=(1, 0)),
    lambda x: fft.fft(x, n=4, dim=1), lambda x: fft.fft(x, n=20), lambda x: fft.hfft(x, n=9),
    lambda x: fft.irfft(fft.rfft(x), n=8), lambda x: fft.fftshift(fft.fft2(x)),
    lambda x: fft.ihfft2(x), lambda x: fft.hfft2(x + 0j),
    lambda x: fft.irfft2(x + 1j * x, s=(4, 5)),
    lambda x: fft.ifftn(x * (1 + 1j), dim=(0, 1, 2)),
]  # fmt: skip


@for_each("index", range(len(SEVERAL)))
def test_several_axes(index: int) -> None:
    check(SEVERAL[index], random(3, 6, 8).double(), rtol=1e-9, atol=1e-9)


@pytest.fixture
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


@pytest.mark.usefixtures("_fresh")
def test_compiled_filter() -> None:
    def filtered(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return fft.irfft2(fft.rfft2(x, norm="ortho") * w, s=x.shape[-2:], norm="ortho")

    x, w = random(2, 14, 14), numbers(14, 8)
    made = torch.compile(filtered, backend=tilewright, fullgraph=True)
    torch.testing.assert_close(made(x, w), filtered(x, w), rtol=1e-4, atol=1e-5)


@for_each("length", [40, 61])
def test_short_time_transform(length: int) -> None:
    window = torch.hann_window(16)

    def spectrum(x: torch.Tensor, window: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 16, 5, window=window, return_complex=True)

    x = random(2, length)
    check(spectrum, x, window, rtol=1e-4, atol=1e-4)
    there = spectrum(x, window)
    check(lambda z, w: torch.istft(z, 16, 5, window=w), there, window, rtol=1e-4, atol=1e-4)


class Spectrum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return fft.rfft(x).abs()


def test_a_length_that_is_not_known() -> None:
    sizes = ({1: torch.export.Dim("n", min=2, max=64)},)
    program = torch.export.export(Spectrum(), (random(3, 8),), dynamic_shapes=sizes)
    with pytest.raises(UnsupportedError, match="symbolic length"):
        import_torch(program)
