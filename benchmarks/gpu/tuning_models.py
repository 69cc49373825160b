"""The two models of `tuning.py` as modules of torch with seeded weights, and their inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

# Width, heads, heads of keys and values, and inner width of Llama 3.2 1B, half of its layers, and
# the words of Llama 2.
WIDTH, HEADS, KV_HEADS, INNER, WORDS = 2048, 32, 8, 8192, 32000
LAYERS, TOKENS = 8, 512
ROPE_BASE = 500_000.0


class Bottleneck(nn.Module):
    """A block of ResNet-50: 1x1, 3x3, 1x1, and the way around them."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            *_conv(channels, width, 1),
            nn.ReLU(),
            *_conv(width, width, 3, stride),
            nn.ReLU(),
            *_conv(width, out, 1),
        )
        plain = stride == 1 and channels == out
        self.around = nn.Sequential() if plain else nn.Sequential(*_conv(channels, out, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block."""
        return F.relu(self.body(x) + self.around(x))


def _conv(channels: int, out: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    conv = nn.Conv2d(channels, out, size, stride, size // 2, bias=False)
    nn.init.normal_(conv.weight, std=math.sqrt(1 / (channels * size * size)))
    return conv, nn.BatchNorm2d(out)


class ResNet50(nn.Module):
    """ResNet-50 of 224 x 224 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks: list[nn.Module] = []
        channels = 64
        for stage, count in enumerate((3, 4, 6, 3)):
            width = 64 << stage
            for n in range(count):
                blocks.append(Bottleneck(channels, width, 2 if stage and n == 0 else 1))
                channels = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes."""
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class RmsNorm(nn.Module):
    """The norm of Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows scaled to a mean square of one, in f32."""
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * scaled.to(x.dtype)


class LlamaLayer(nn.Module):
    """Attention with rotary positions and fewer heads of keys, and a gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        size = WIDTH // HEADS
        self.first, self.second = RmsNorm(), RmsNorm()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * size, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * size, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, INNER, bias=False)
        self.up = nn.Linear(WIDTH, INNER, bias=False)
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """The layer."""
        batch, tokens, _ = x.shape
        y = self.first(x)
        q, k, v = (
            linear(y).view(batch, tokens, heads, -1).transpose(1, 2)
            for linear, heads in ((self.q, HEADS), (self.k, KV_HEADS), (self.v, KV_HEADS))
        )
        q, k = _turned(q, turn), _turned(k, turn)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(seen.transpose(1, 2).reshape(batch, tokens, WIDTH))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def _turned(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    cosine, sine = turn
    half = x.shape[-1] // 2
    return x * cosine + torch.cat((-x[..., half:], x[..., :half]), -1) * sine


class Llama(nn.Module):
    """The prefill of a Llama: the scores of the word after the last token."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.norm = RmsNorm()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        size = WIDTH // HEADS
        rates = ROPE_BASE ** -(torch.arange(0, size, 2).float() / size)
        angles = torch.outer(torch.arange(TOKENS).float(), rates)
        angles = torch.cat((angles, angles), -1)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Scores of the words."""
        x = self.words(ids)
        turn = (self.cosine.to(x.dtype), self.sine.to(x.dtype))
        for layer in self.layers:
            x = layer(x, turn)
        return self.head(self.norm(x)[:, -1])


def resnet50(batch: int = 32) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """ResNet-50 and a batch of images, in f16."""
    torch.manual_seed(0)
    module = ResNet50().eval().half()
    return module, (torch.randn(batch, 3, 224, 224).half(),)


def llama() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The Llama and a prompt, in f16."""
    torch.manual_seed(0)
    module = Llama().eval().half()
    return module, (torch.randint(0, WORDS, (1, TOKENS)),)


MODELS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {"resnet50": resnet50, "llama": llama}
