"""Rows of measured times, one for each model and engine: who is fastest, and by how much."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

OURS = "tilewright"
LABELS = {
    OURS: "Tilewright",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch-compile": "torch.compile",
    "torch-frozen": "torch.compile, frozen",
    "jax": "XLA (JAX)",
    "iree": "IREE",
    "tvm-untuned": "TVM, untuned",
    "torch": "torch eager",
}
# Of an answer that is no answer to the question; narrow types are off by a few hundredths.
WRONG = 0.2
# Other engines that must have run a model for it to count in the mean.
FEWEST_PEERS = 2

Row = Mapping[str, Any]
Rows = Mapping[str, Mapping[str, Row]]


def by_model(results: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Model → engine → row, without those that failed or answered something else."""
    found: dict[str, dict[str, Row]] = {}
    for row in results:
        engines = found.setdefault(row["model"], {})
        if "min_ms" in row and not is_wrong(row):
            engines[row["engine"]] = row
    return found


def is_wrong(row: Row) -> bool:
    """Whether an engine answered something else; an error that is not finite is kept as `None`."""
    error = row.get("error", 0.0)
    return error is None or not error <= WRONG


def best_peer(engines: Mapping[str, Row]) -> str | None:
    """The fastest engine in f32 that is not ours."""
    return min(peers(engines), key=lambda name: engines[name]["min_ms"], default=None)


def peers(engines: Mapping[str, Row]) -> list[str]:
    """The other engines in f32."""
    return [name for name in engines if name in LABELS and name != OURS]


def best_ratio(results: Iterable[Row]) -> dict[str, float]:
    """For each model how much longer the best other engine takes; above one, ours is faster."""
    ratios = {}
    for model, engines in by_model(results).items():
        best = best_peer(engines)
        if best is not None and OURS in engines:
            ratios[model] = engines[best]["min_ms"] / engines[OURS]["min_ms"]
    return ratios


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of ratios."""
    return statistics.geometric_mean(values)


def of_roof(row: Row) -> float | None:
    """The least time that our kernels could take together, of the time that they took."""
    kernels = row.get("kernels") or []
    if not kernels or any(k["of_roof"] is None for k in kernels):
        return None
    least = sum(k["min_ms"] * k["of_roof"] for k in kernels)
    return least / sum(k["min_ms"] for k in kernels)


def unusable(results: Iterable[Row]) -> dict[tuple[str, str], str]:
    """What became of engines that have no time: by model and engine, `failed` or `wrong`."""
    found = {}
    for row in results:
        if "failure" in row or is_wrong(row):
            found[row["model"], row["engine"]] = "failed" if "failure" in row else "wrong"
    return found


def counted(models: Rows) -> dict[str, float]:
    """The ratios of models that enough other engines ran."""
    ratios = best_ratio(row for engines in models.values() for row in engines.values())
    return {name: r for name, r in ratios.items() if len(peers(models[name])) >= FEWEST_PEERS}


def means(models: Rows) -> str:
    """The geometric mean of the ratios."""
    ratios = counted(models)
    if not ratios:
        return ""
    slower = sorted(name.rpartition("/")[2] for name, ratio in ratios.items() if ratio < 1)
    text = f"Geometric mean of the ratios: {geometric_mean(ratios.values()):.2f} over {len(ratios)}"
    alone = sorted(name.rpartition("/")[2] for name in models if name not in ratios)
    if alone:
        text += f" (not counted, with fewer than {FEWEST_PEERS} other engines: {', '.join(alone)})"
    return f"{text}; slower than the best other: {', '.join(slower) or 'none'}."


def others(rows: Iterable[Row]) -> float:
    """The most that other processes used while something was measured, of a core."""
    return max((row["others"] for row in rows if "others" in row), default=0.0)
