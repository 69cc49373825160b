"""The speed table of the READMEs: the newest record of each kind of processor, and the GPU's.

Both READMEs have the same figures; what stands around them is in `readme.toml`. `figures.py` puts
the text into the pages.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if str(HERE / "gpu") not in sys.path:
    sys.path.insert(0, str(HERE / "gpu"))

from engine_rows import (  # noqa: E402
    FEWEST_PEERS,
    LABELS,
    OURS,
    best_peer,
    best_ratio,
    by_model,
    counted,
    geometric_mean,
    others,
)
from page import best_ratio as gpu_ratio  # noqa: E402
from page import model_rows, peers  # noqa: E402
from report import newest  # noqa: E402
from results_file import FOLDER, read_results  # noqa: E402
from tables import cell, markdown, milliseconds  # noqa: E402

# A few of all measured models: convolutions, transformers, a recurrence, recommendations.
SHOWN = (
    "resnet50",
    "mobilenet_v2",
    "efficientnet_b0",
    "vit_b16",
    "bert_base",
    "gpt2_decode",
    "lstm",
    "dlrm",
)
KINDS = {"x86_64": "x86-64", "aarch64": "AArch64"}
GPU_CASE = "{} 1 fp16"
GPU_LABELS = {"eager": "torch", "inductor": "torch.compile", "jax": "JAX"}
Words = Mapping[str, str]
Rows = Mapping[str, Mapping[str, Any]]


def speed(language: str) -> str:
    """The table and the sentences below it, in the words of a README."""
    words = tomllib.loads((HERE / "readme.toml").read_text())[language]
    cpus = {kind: report for kind in KINDS if (report := newest().get(kind))}
    gpu = read_results(FOLDER / "gpu.json")
    on_cpus = {kind: _models(report) for kind, report in cpus.items()}
    on_gpu = model_rows({name: part["figures"] for name, part in gpu["parts"].items()})
    heads = [words["model"]]
    for kind in (*(KINDS[kind] for kind in cpus), "GPU"):
        heads += [words["kind"].format(kind=kind), words["ratio"]]
    lines = [
        [
            model,
            *(c for rows in on_cpus.values() for c in _on_cpu(rows, model)),
            *_on_gpu(on_gpu, model),
        ]
        for model in SHOWN
    ]
    texts = [_about_cpu(words, kind, cpus[kind], rows) for kind, rows in on_cpus.items()]
    texts.append(_sentence(words, "gpu", gpu, gpu_counted(on_gpu)))
    links = (f"[{KINDS[kind]}](docs/results/speed-{kind}.md)" for kind in cpus)
    texts.append(words["about"].format(fewest=FEWEST_PEERS, links=words["join"].join(links)))
    return "\n\n".join([markdown(heads, lines), *(text.strip() for text in texts)])


def _models(report: Mapping[str, Any]) -> Rows:
    """The whole models of a record."""
    return {name: rows for name, rows in by_model(report["results"]).items() if "/" not in name}


def _on_cpu(models: Rows, model: str) -> list[str]:
    """The cells of a model on one kind of processor."""
    engines = models.get(model, {})
    best = best_peer(engines)
    if OURS not in engines or best is None:
        return ["–", "–"]
    ours, other = (milliseconds(engines[name]["min_ms"]) for name in (OURS, best))
    return [f"{ours} / {other} ({LABELS[best]})", cell(best_ratio(engines.values())[model], ".2f")]


def _on_gpu(rows: Rows, model: str) -> list[str]:
    """The cells of a model on the GPU."""
    row = rows[GPU_CASE.format(model)]
    best = min(peers(row), key=lambda name: row[name]["ms"])
    ours, other = (milliseconds(row[name]["ms"]) for name in ("ours", best))
    return [f"{ours} / {other} ({GPU_LABELS[best]})", cell(gpu_ratio(row), ".2f")]


def gpu_counted(rows: Rows) -> dict[str, float]:
    """The ratios of cases that enough other engines ran."""
    ratios = {name: gpu_ratio(dict(row)) for name, row in rows.items()}
    enough = [name for name, row in rows.items() if len(peers(dict(row))) >= FEWEST_PEERS]
    return {name: ratio for name in enough if (ratio := ratios[name]) is not None}


def _about_cpu(words: Words, kind: str, report: Mapping[str, Any], models: Rows) -> str:
    (threads,) = {row["threads"] for rows in models.values() for row in rows.values()}
    count = words["one_thread" if threads == 1 else "more_threads"].format(threads=threads)
    busy = others(row for rows in models.values() for row in rows.values())
    more = {"kind": KINDS[kind], "threads": count, "others": f"{busy:.0%}"}
    return _sentence(words, "cpu", report, counted(models), **more)


def _sentence(
    words: Words, which: str, report: Mapping[str, Any], ratios: Mapping[str, float], **more: str
) -> str:
    """What is said of one machine."""
    machine = report["machine"]
    slower = [f"{name} ({ratio:.2f})" for name, ratio in ratios.items() if ratio < 1]
    return words[which].format(
        machine=machine.partition(",")[0] if isinstance(machine, str) else machine["cpu"],
        date=report["date"],
        commit=words["measured_at" if report.get("commit") else "kept_in"].format(**report),
        mean=f"{geometric_mean(ratios.values()):.2f}" if ratios else "–",
        count=len(ratios),
        slower=words["join"].join(slower) or words["none"],
        **more,
    )
