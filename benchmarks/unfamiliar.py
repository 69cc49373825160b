"""Torch modules of models that nobody looked at while writing the compiler, beside `modules.py`.

They stand for what a user may bring: other ways to connect, group, shuffle, window and normalise.
Where `transformers` has no such architecture, it is written out here.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import transformers as hf
from modules import Image, Prefill, seeded
from torch import nn


class Pixels(nn.Module):
    """A plain network of images: pixels in, logits out."""

    outputs = ("logits",)

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        return self.layers(pixel_values)


class Text(nn.Module):
    """A text encoder without token types: ids and mask in, hidden states out."""

    outputs = ("last_hidden_state",)

    def __init__(self, model: hf.PreTrainedModel) -> None:
        """Wrap `model`, whose result is a dictionary."""
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the last layer's hidden states."""
        result = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return result.last_hidden_state


class Sound(nn.Module):
    """An encoder of sound: one tensor in, hidden states out."""

    outputs = ("last_hidden_state",)

    def __init__(self, model: nn.Module) -> None:
        """Wrap `model`, whose result is a dictionary."""
        super().__init__()
        self.model = model

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        """Return the last layer's hidden states."""
        return self.model(sound).last_hidden_state


def convolution(into: int, out: int, window: int, stride: int = 1, groups: int = 1) -> nn.Module:
    """A convolution, a batch norm and a ReLU."""
    return nn.Sequential(
        nn.Conv2d(into, out, window, stride, window // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(),
    )


def head(channels: int) -> list[nn.Module]:
    """From a picture to a thousand logits."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]


class Dense(nn.Module):
    """A layer of DenseNet: norm and activation come first, the result joins what came in."""

    def __init__(self, channels: int, growth: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what came in and what is new."""
        return torch.cat([x, self.layers(x)], 1)


def densenet121() -> nn.Module:
    """Four blocks of growing concatenations."""
    layers: list[nn.Module] = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for block, depth in enumerate((6, 12, 24, 16)):
        if block:
            layers += [nn.BatchNorm2d(channels), nn.ReLU()]
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(depth):
            layers.append(Dense(channels))
            channels += 32
    return Pixels(*layers, nn.BatchNorm2d(channels), nn.ReLU(), *head(channels))


class Shuffle(nn.Module):
    """A unit of ShuffleNet v2: half of the channels pass, and the halves are interleaved."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.stride, half = stride, out // 2
        enter = into if stride > 1 else half
        self.side = nn.Sequential(
            nn.Conv2d(into, into, 3, stride, 1, groups=into, bias=False),
            nn.BatchNorm2d(into),
            convolution(into, half, 1),
        )
        self.main = nn.Sequential(
            convolution(enter, half, 1),
            nn.Conv2d(half, half, 3, stride, 1, groups=half, bias=False),
            nn.BatchNorm2d(half),
            convolution(half, half, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the interleaved channels."""
        if self.stride > 1:
            halves = self.side(x), self.main(x)
        else:
            passed, rest = x.chunk(2, 1)
            halves = passed, self.main(rest)
        return torch.stack(halves, 2).flatten(1, 2)


def shufflenet_v2() -> nn.Module:
    """ShuffleNet v2, width 1."""
    layers: list[nn.Module] = [convolution(3, 24, 3, 2), nn.MaxPool2d(3, 2, 1)]
    channels = 24
    for out, depth in ((116, 4), (232, 8), (464, 4)):
        for unit in range(depth):
            layers.append(Shuffle(channels, out, 2 if unit == 0 else 1))
            channels = out
    return Pixels(*layers, convolution(channels, 1024, 1), *head(1024))


class UNet(nn.Module):
    """Down and up again with connections across: pixels in, a mask of the same size out."""

    outputs = ("mask",)

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [width << level for level in range(4)]
        pairs = list(zip([3, *widths], widths, strict=False))
        self.down = nn.ModuleList(self._double(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[2::-1])
        self.join = nn.ModuleList(self._double(2 * w, w) for w in widths[2::-1])
        self.last = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _double(into: int, out: int) -> nn.Module:
        return nn.Sequential(convolution(into, out, 3), convolution(out, out, 3))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return two scores a pixel."""
        x, kept = pixel_values, []
        for level, double in enumerate(self.down):
            x = double(x if level == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for up, join, across in zip(self.up, self.join, kept[2::-1], strict=True):
            x = join(torch.cat([across, up(x)], 1))
        return self.last(x)


REGNET = hf.RegNetConfig(
    num_labels=1000,
    hidden_sizes=[48, 104, 208, 440],
    depths=[2, 5, 13, 1],
    groups_width=8,
    embedding_size=32,
)
T5_SMALL = hf.T5Config(d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8)
LLAMA = hf.LlamaConfig(
    vocab_size=32000,
    hidden_size=512,
    intermediate_size=1376,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=4,
    max_position_embeddings=512,
)
WHISPER_TINY = hf.WhisperConfig(
    d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
)


def whisper_encoder() -> nn.Module:
    """Whisper's encoder of 30 s of sound."""
    return Sound(hf.models.whisper.modeling_whisper.WhisperEncoder(WHISPER_TINY))


UNFAMILIAR: dict[str, Callable[[], nn.Module]] = {
    "densenet121": seeded(densenet121),
    "shufflenet_v2": seeded(shufflenet_v2),
    "unet": seeded(UNet),
    "regnet_y": seeded(lambda: Image(hf.RegNetForImageClassification(REGNET))),
    "swin_t": seeded(lambda: Image(hf.SwinForImageClassification(hf.SwinConfig(num_labels=1000)))),
    "mobilevit_s": seeded(
        lambda: Image(hf.MobileViTForImageClassification(hf.MobileViTConfig(num_labels=1000)))
    ),
    "segformer_b0": seeded(
        lambda: Image(hf.SegformerForSemanticSegmentation(hf.SegformerConfig()))
    ),
    "poolformer": seeded(
        lambda: Image(hf.PoolFormerForImageClassification(hf.PoolFormerConfig(num_labels=1000)))
    ),
    "distilbert": seeded(lambda: Text(hf.DistilBertModel(hf.DistilBertConfig()))),
    "t5_encoder": seeded(lambda: Text(hf.T5EncoderModel(T5_SMALL))),
    "llama": seeded(lambda: Prefill(hf.LlamaForCausalLM(LLAMA))),
    "whisper_encoder": seeded(whisper_encoder),
}
