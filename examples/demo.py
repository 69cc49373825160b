"""Name the type of every file in a folder, with a real model compiled by Tilewright.

    python examples/demo.py [folder]

The model is Magika's, pretrained, out of the wheel of that name: 2048 bytes of a file in, one of
some 200 types out. It is compiled here, answers beside ONNX Runtime, and both are timed in turns.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tilewright as tw

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {"__pycache__", "build", "dist", "golden", "results"}
MAX_FILES = 12
ROUNDS = 60

Classifier = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    """Compile, classify, compare, time."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    files = choose_files(folder)
    if not files:
        sys.exit(f"{folder} holds no files with any content")
    model, config = magika_files()

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    batch = session.get_inputs()[0].shape[0]  # the name of the symbolic size
    start = time.perf_counter()
    compiled = tw.compile(model, dims={batch: 1}, cache=False)
    seconds = time.perf_counter() - start
    print(f"compiled {model.parent.name}/{model.name} in {seconds:.1f} s: {compiled}")
    engines: dict[str, Classifier] = {
        "Tilewright": lambda x: np.asarray(compiled(x)),
        "ONNX Runtime": lambda x: session.run(None, {"bytes": x})[0],
    }
    inputs = [features(path, config) for path in files]
    agree = show_answers(folder, files, inputs, engines, config["target_labels_space"])
    show_latency(inputs, engines)
    if not agree:
        sys.exit("the answers differ")


def magika_files() -> tuple[Path, dict]:
    """The model in Magika's wheel and its configuration; nothing of Magika is imported."""
    found = importlib.util.find_spec("magika")
    if found is None or found.origin is None:
        sys.exit("the demonstration needs the model of the package magika: pip install magika")
    folder = next((Path(found.origin).parent / "models").glob("standard_*"))
    return folder / "model.onnx", json.loads((folder / "config.min.json").read_text())


def choose_files(folder: Path) -> list[Path]:
    """Some files of the folder, those of rare endings first, so that many kinds are shown."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if not any(p.startswith(".") or p in SKIPPED for p in path.relative_to(folder).parts)
        and path.is_file()
        and path.stat().st_size >= 8
    ]
    seen: dict[str, int] = {}
    ranked = []
    for path in found:
        rank = seen[path.suffix] = seen.get(path.suffix, 0) + 1
        ranked.append((rank, path))
    return [path for _, path in sorted(ranked)[:MAX_FILES]]


def features(path: Path, config: dict) -> np.ndarray:
    """The first and last bytes without the white space around the content, padded."""
    size, block, padding = config["beg_size"], config["block_size"], config["padding_token"]
    with path.open("rb") as file:
        start = file.read(block).lstrip()[:size]
        file.seek(max(0, path.stat().st_size - block))
        end = file.read(block).rstrip()[-size:]
    row = [*start, *[padding] * (size - len(start)), *[padding] * (size - len(end)), *end]
    return np.array([row], np.int32)


def show_answers(
    folder: Path,
    files: list[Path],
    inputs: list[np.ndarray],
    engines: dict[str, Classifier],
    labels: list[str],
) -> bool:
    """A table of the answers; whether all engines agree."""
    table = Table("file", *engines, "difference", box=box.SIMPLE_HEAD)
    agree = True
    for path, x in zip(files, inputs, strict=True):
        scores = [classify(x)[0] for classify in engines.values()]
        best = [int(s.argmax()) for s in scores]
        agree &= len(set(best)) == 1
        answers = [f"{labels[b]} {s[b]:.1%}" for b, s in zip(best, scores, strict=True)]
        difference = float(np.abs(scores[0] - scores[1]).max())
        table.add_row(Text(str(path.relative_to(folder))), *answers, f"{difference:.1e}")
    Console().print(table)
    return agree


def show_latency(inputs: list[np.ndarray], engines: dict[str, Classifier]) -> None:
    """A table of the time one file takes, the engines taking turns."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    for number in range(ROUNDS):
        x = inputs[number % len(inputs)]
        for name, classify in engines.items():
            classify(x)  # brings the engine's weights back into the caches
            start = time.perf_counter()
            classify(x)
            times[name].append((time.perf_counter() - start) * 1e3)
    table = Table("engine", "min ms", "median ms", box=box.SIMPLE_HEAD)
    for name, taken in times.items():
        table.add_row(name, f"{min(taken):.3f}", f"{statistics.median(taken):.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
